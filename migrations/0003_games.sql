-- What is known of games, from the facts that were reported.

create table game (
  -- The identifier of the service that reports; a game is its id alone.
  id bigint constraint game_pkey primary key,
  -- Null once that user is deleted.
  creator_id bigint,
  player_ids bigint[] not null,
  starts_at timestamptz,
  place text,
  -- The `time` of the newest fact applied; null while only a score has made the game known.
  fact_time timestamptz,
  -- The `time` of the fact by which the present four were told that they are; null while nobody was.
  filled_at timestamptz,
  cancelled boolean not null default false,
  updated_at timestamptz not null
);

create index game_creator on game (creator_id);
create index game_players on game using gin (player_ids);

-- Reminders and starts that were told, so that none is told twice, whoever fires or reports it.
create table game_notice (
  game_id bigint not null constraint game_notice_game_fkey references game on delete cascade,
  -- `started@<instant>`, `reminder@<instant>`
  notice text not null,
  created_at timestamptz not null,
  constraint game_notice_pkey primary key (game_id, notice)
);

-- Each event once. It holds nothing but hashes of what was sent, hence nothing about a person.
create table event (
  -- Of source and id: a hash, so that both may be of any length.
  key text collate "C" constraint event_pkey primary key,
  -- Of the content: tells a repeat from another content under the same name.
  digest text not null,
  type text not null,
  notifications integer not null default 0,
  received_at timestamptz not null
);

create index event_received on event (received_at);

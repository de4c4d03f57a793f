-- What is known of games, from the facts that were reported.

create table game (
  -- The identifier of the service that reports; a game is its id alone.
  id bigint constraint game_pkey primary key,
  creator_id bigint not null,
  player_ids bigint[] not null,
  starts_at timestamptz,
  place text,
  -- The `time` of the newest fact applied; -infinity while only a score has made the game known.
  fact_time timestamptz not null,
  -- Whether the present filling has been told of.
  full_told boolean not null default false,
  cancelled_at timestamptz,
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

-- Each event once. The digest tells a repeat from another content under the same name.
create table event (
  source text not null,
  id text not null,
  digest bytea not null,
  type text not null,
  notifications integer not null default 0,
  received_at timestamptz not null,
  constraint event_pkey primary key (source, id)
);

create index event_received on event (received_at);

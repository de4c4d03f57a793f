-- Accounts, the levels they choose from, and how people sign in.

create table game_level (
  id bigint generated always as identity constraint game_level_pkey primary key,
  slug text not null constraint game_level_slug_key unique,
  name text not null,
  description text not null,
  position integer not null
);

create table app_user (
  id bigint generated always as identity constraint app_user_pkey primary key,
  email text not null constraint app_user_email_key unique,
  first_name text not null,
  last_name text not null,
  locale text not null constraint app_user_locale_check check (locale in ('fr', 'en')),
  game_level_id bigint constraint app_user_game_level_fkey references game_level on delete set null,
  terms_version text not null,
  terms_accepted_at timestamptz not null,
  created_at timestamptz not null,
  updated_at timestamptz not null
);

create index app_user_game_level on app_user (game_level_id) where game_level_id is not null;

-- One row a sign-in; its tokens are numbered by `generation`, the newest being the current one.
create table session (
  id uuid constraint session_pkey primary key default gen_random_uuid(),
  user_id bigint not null constraint session_user_fkey references app_user on delete cascade,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  ended_at timestamptz,
  end_reason text constraint session_end_reason_check check (end_reason in ('logout', 'reuse', 'operator')),
  generation integer not null default 1,
  -- When the newest token was issued; with the generation it rebuilds that very token.
  issued_at timestamptz not null,
  -- The newest generation that a client has shown us.
  presented integer not null default 0,
  -- When the latest tokens were superseded, oldest first; times past the 30 s of grace are dropped.
  superseded_at timestamptz[] not null default '{}',
  constraint session_ended_check check ((ended_at is null) = (end_reason is null))
);

create index session_by_user on session (user_id);

-- One row an address that was asked about, known to us or not: it holds the 60 s between sends over all lanes.
create table sign_in_address (
  email text constraint sign_in_address_pkey primary key,
  sent_at timestamptz not null,
  -- False when the last send was a decoy.
  mailed boolean not null
);

-- The live code of an address and lane. `session_id` is the lane: null for everybody, else that of one known client.
create table sign_in_code (
  -- A new one for each code, so that whatever was aimed at the old code misses the new.
  id uuid constraint sign_in_code_pkey primary key,
  email text not null constraint sign_in_code_address_fkey references sign_in_address on delete cascade,
  session_id uuid constraint sign_in_code_session_fkey references session on delete cascade,
  purpose text not null constraint sign_in_code_purpose_check check (purpose in ('sign_up', 'sign_in', 'decoy')),
  mac bytea not null,
  attempts smallint not null default 0 constraint sign_in_code_attempts_check check (attempts between 0 and 5),
  -- Over all codes of this address and lane since the last success.
  wrong_guesses integer not null default 0,
  sent_at timestamptz not null,
  expires_at timestamptz not null,
  first_name text,
  last_name text,
  terms_version text,
  terms_accepted_at timestamptz,
  constraint sign_in_code_lane_key unique nulls not distinct (email, session_id),
  constraint sign_in_code_profile_check check (purpose <> 'sign_up' or (first_name is not null
    and last_name is not null and terms_version is not null and terms_accepted_at is not null))
);

create index sign_in_code_session on sign_in_code (session_id) where session_id is not null;

-- A guess at a code that isn't there writes here, so that it takes as long as a guess at one that is.
create table missed_guess (
  slot smallint constraint missed_guess_pkey primary key,
  guesses bigint not null default 0
);

insert into missed_guess (slot) select generate_series(0, 63);

-- The rate limit's counters, in the shape its library wants; `expire` is in Unix milliseconds.
create table throttle (
  key text constraint throttle_pkey primary key,
  points integer not null,
  expire bigint
);

create index throttle_expire on throttle (expire);

-- A usual padel scale, to start with.
insert into game_level (slug, name, description, position) values
  ('decouverte', 'Découverte', 'Vous débutez et découvrez les règles et les premiers coups.', 1),
  ('initie', 'Initié', 'Vous renvoyez la balle à faible rythme, les vitres surprennent encore.', 2),
  ('debutant-confirme', 'Débutant confirmé', 'Vous tenez de courts échanges et connaissez les positions.', 3),
  ('intermediaire', 'Intermédiaire', 'Vous maîtrisez les coups de base et commencez à jouer avec les vitres.', 4),
  ('intermediaire-confirme', 'Intermédiaire confirmé', 'Vous construisez les points, volée et lob sont réguliers.', 5),
  ('avance', 'Avancé', 'Vous contrôlez le rythme, bandeja et sorties de vitre sont acquises.', 6),
  ('expert', 'Expert', 'Vous jouez en compétition régionale avec une tactique d’équipe aboutie.', 7),
  ('elite', 'Élite', 'Vous jouez au niveau national ou international.', 8);

-- Separate codes for each requester, and budgets of wrong guesses. A requester is a known client or a network.
--
-- Processes of the previous version keep working during the upgrade. They store codes without a network, which callers
-- of every network may use, so the constraint keeps its name. They do not set the new columns, so these are nullable or
-- have a default. The new constraint and the new index need a lock on `sign_in_code`. This table has few rows: codes of
-- the last day, and addresses with wrong guesses.

alter table sign_in_address
  -- The last request by any requester. Null after a request to a process of the previous version.
  add column asked_at timestamptz,
  -- The bucket of wrong guesses, as the time at which it is full again. Null means full.
  add column guesses_full_at timestamptz,
  -- The wrong guesses in a fixed window, and the start of the window.
  add column guesses integer not null default 0,
  add column guesses_since timestamptz;

-- The budget of a network, and its unfinished sign-ups in a fixed window of an hour. `network` is a keyed hash.
create table sign_in_network (
  network bytea constraint sign_in_network_pkey primary key,
  guesses_full_at timestamptz,
  guesses integer not null default 0,
  guesses_since timestamptz,
  sign_ups integer not null default 0,
  sign_ups_since timestamptz
);

-- The budget of the installation, in one row.
create table sign_in_installation (
  id boolean constraint sign_in_installation_pkey primary key default true
    constraint sign_in_installation_id_check check (id),
  -- The wrong guesses of strangers in a fixed window of 7 days. `guesses` counts guesses at codes of one part, while
  -- neither the budget of the address nor that of the network is spent. `all_guesses` counts guesses at codes of any
  -- number of parts in this situation. `outside_guesses` counts guesses while one of the two budgets is spent.
  guesses integer not null default 0,
  all_guesses integer not null default 0,
  outside_guesses integer not null default 0,
  guesses_since timestamptz,
  three_parts_until timestamptz,
  -- The unfinished sign-ups in a fixed window of an hour.
  sign_ups integer not null default 0,
  sign_ups_since timestamptz
);

insert into sign_in_installation default values;

alter table session
  -- The mails with codes to this session as a known client. Nothing resets the count.
  add column code_mails smallint not null default 0,
  add column code_sent_at timestamptz,
  -- True after a logout on a shared computer. Such a session is no known client.
  add column is_forgotten boolean not null default false;

alter table sign_in_code
  -- The keyed hash of the requester's network. Null for a known client, and in rows of the previous version.
  add column network bytea,
  -- When this code was first made. A repeat keeps this time.
  add column made_at timestamptz,
  -- The sealed code, so it can be mailed again, and the id to which it is bound. A process of the previous version
  -- replaces `id` but not these two columns.
  add column sealed text,
  add column sealed_id uuid,
  -- The hashes of the parts, if the code has several parts. `mac` is then random.
  add column part_macs bytea[],
  -- The number of parts that were entered, and the network that entered them.
  add column entered_parts smallint not null default 0,
  add column entered_network bytea,
  -- The attempts by other requesters.
  add column other_attempts smallint not null default 0
    constraint sign_in_code_other_attempts_check check (other_attempts between 0 and 2),
  -- The wrong guesses at this code by its own network, as taken from the budgets of the network and the installation.
  add column network_guesses integer not null default 0,
  add column installation_guesses integer not null default 0,
  -- The number of repeats of this code.
  add column repeats smallint not null default 0,
  -- The mails to this network since its last success.
  add column mails integer not null default 0,
  -- The mails of the pending sign-up that count in the limits.
  add column counted_sign_ups integer not null default 0,
  drop constraint sign_in_code_lane_key,
  add constraint sign_in_code_lane_key unique nulls not distinct (email, session_id, network);

create index sign_in_code_live on sign_in_code (email, expires_at);

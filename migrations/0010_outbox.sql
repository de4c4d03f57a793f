-- Creates the outbox, which replaces the queue of graphile-worker. Each row is one delivery, such as the mail with a
-- code. A finished row is deleted.
--
-- The schema `graphile_worker` stays, because processes of the previous version still use it during an upgrade. New
-- workers move waiting mails from there (src/outbox/previous-queue.ts). A migration of a later version will drop the
-- schema.
create table outbox (
  id bigint generated always as identity constraint outbox_pkey primary key,
  channel text not null,
  -- Within a channel, a delivery of a lower class goes first.
  class smallint not null,
  -- Within a class, networks take turns. The value is a keyed hash. Without a network, it is a single zero byte.
  network bytea not null default '\x00' constraint outbox_network_check check (network <> ''),
  created_at timestamptz not null,
  due timestamptz not null,
  -- Whether `due` has come. Claims read only rows that are ready, so a claim never reads deferred rows.
  ready boolean not null default true,
  attempts integer not null default 0,
  -- The random token of the worker's lease, and the end of the lease by the clock of the database.
  lease uuid,
  leased_until timestamptz,
  -- The code that the delivery mails. If the code no longer exists, the delivery is dropped.
  code_id uuid,
  payload jsonb not null
) with (
  -- Each delivery changes its row twice. Free space on the page keeps these changes out of the indexes.
  fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000
);
create index outbox_ready on outbox (channel, class, network, due) where ready;
create index outbox_deferred on outbox (due) where not ready;
-- A code has at most one delivery that has not left yet.
create unique index outbox_code on outbox (code_id) where code_id is not null;

-- The number of first attempts in each second, by the clock of the database. Workers delete rows older than a minute.
create unlogged table outbox_attempt (
  second bigint constraint outbox_attempt_pkey primary key,
  count integer not null
);

-- The random key of the keyed hashes of networks. The key is sealed under JWT_SECRET. Normally the table has one row. A
-- process whose secrets open no row adds a row, and no process replaces a key (src/limits/network-key.ts).
create table network_key (
  id uuid constraint network_key_pkey primary key default gen_random_uuid(),
  sealed text not null,
  created_at timestamptz not null default clock_timestamp()
);

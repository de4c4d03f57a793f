-- The data about earlier refreshes of a session that `refresh` needs. Processes of the previous version do not set
-- these columns, so all of them are nullable. After a refresh by such a process, `refresh` ignores them.

alter table session
  -- When a refresh last returned the newest token to a client.
  add column given_at timestamptz,
  -- The refresh that issued the newest token: the generation of this token, and the keyed hashes of the client's
  -- network and of its User-Agent. If the generation differs from `generation`, a process of the previous version
  -- issued the newest token, and the hashes belong to an earlier refresh.
  add column refresh_generation integer,
  add column refresh_network bytea,
  add column refresh_agent bytea;

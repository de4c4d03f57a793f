-- Finds the newest sessions of a user. PostgreSQL locks the table `session` for writes while it builds the index (1 s
-- for a million rows).
create index session_newest on session (user_id, created_at, id);

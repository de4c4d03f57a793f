-- The index `session_newest` begins with the same column, so it finds the sessions of a user too. PostgreSQL locks the
-- table `session` for milliseconds.
drop index session_by_user;

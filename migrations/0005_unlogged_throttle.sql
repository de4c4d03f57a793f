-- Counters of a minute: a crash of PostgreSQL may forget them, and then no commit of theirs waits for the disk. What counts the
-- guesses at a code is not among them.
alter table throttle set unlogged;

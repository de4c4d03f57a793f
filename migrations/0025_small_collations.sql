-- Does the same as migration 0019 for tables with few rows. The counters of the throttle start again.
truncate throttle;
alter table throttle alter column key type text collate "C";
alter table game_level alter column slug type text collate "C";
alter table migration alter column name type text collate "C";
alter table outbox alter column channel type text collate "C";

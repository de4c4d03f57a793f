-- Does the same as migration 0019 for the keys of games.
alter table game_notice drop constraint game_notice_pkey;
alter table game_notice alter column notice type text collate "C";
alter table game_notice add constraint game_notice_pkey primary key using index game_notice_c;

alter table game_schedule drop constraint game_schedule_pkey, drop constraint game_schedule_type_check;
alter table game_schedule alter column type type text collate "C";
alter table game_schedule
  add constraint game_schedule_pkey primary key using index game_schedule_c,
  add constraint game_schedule_type_check check (type in ('game_reminder', 'game_started')) not valid;

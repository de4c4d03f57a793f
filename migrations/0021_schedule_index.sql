-- Outside a transaction.
drop index concurrently if exists game_schedule_c;
create unique index concurrently game_schedule_c on game_schedule (game_id, starts_at, type collate "C", due_at);

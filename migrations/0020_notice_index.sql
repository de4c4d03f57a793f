-- Outside a transaction.
drop index concurrently if exists game_notice_c;
create unique index concurrently game_notice_c on game_notice (game_id, notice collate "C");

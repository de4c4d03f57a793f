-- Outside a transaction.
drop index concurrently if exists sign_in_code_live_c;
create index concurrently sign_in_code_live_c on sign_in_code (email collate "C", expires_at);

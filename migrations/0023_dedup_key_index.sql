-- Outside a transaction.
drop index concurrently if exists notification_dedup_key_c;
create unique index concurrently notification_dedup_key_c on notification (dedup_key collate "C", user_id);

-- Outside a transaction.
drop index concurrently if exists sign_in_address_email_c;
create unique index concurrently sign_in_address_email_c on sign_in_address (email collate "C");

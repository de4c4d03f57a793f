-- Sorts addresses by bytes, and replaces their indexes by those of migrations 0015 to 0018. PostgreSQL keeps an index
-- that already has the new collation, so no statement reads or rewrites a table. The three tables are locked for some
-- milliseconds. Migration 0026 checks the foreign key without blocking writers.
-- Each of the three locks may wait this long, while the others block writers.
set local lock_timeout = '200ms';
alter table app_user drop constraint app_user_email_key;
alter table app_user alter column email type text collate "C";
alter table app_user add constraint app_user_email_key unique using index app_user_email_c;

alter table sign_in_code drop constraint sign_in_code_address_fkey, drop constraint sign_in_code_lane_key;
drop index sign_in_code_live;
alter table sign_in_address drop constraint sign_in_address_pkey;
alter table sign_in_address alter column email type text collate "C";
alter table sign_in_address add constraint sign_in_address_pkey primary key using index sign_in_address_email_c;
alter table sign_in_code alter column email type text collate "C";
alter table sign_in_code
  add constraint sign_in_code_lane_key unique using index sign_in_code_lane_c,
  add constraint sign_in_code_address_fkey foreign key (email) references sign_in_address on delete cascade not valid;
alter index sign_in_code_live_c rename to sign_in_code_live;

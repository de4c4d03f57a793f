-- The notifications of a fact lie side by side in the index, so that telling several people of it touches one page there, and
-- not one for each. It is built before its forerunner goes: the table can be read meanwhile.
create unique index notification_fact on notification (fact, user_id);
alter table notification
  drop constraint notification_fact_key,
  add constraint notification_fact_key unique using index notification_fact;

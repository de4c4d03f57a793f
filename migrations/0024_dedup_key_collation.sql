-- Does the same as migration 0019 for the deduplication keys of notifications. PostgreSQL changes no column that a
-- trigger names, so the trigger for processes of an earlier version is created again. Citus cannot make an index the
-- index of a constraint, so a distributed table keeps its old index.
do $$
declare
  is_distributed boolean := false;
begin
  if to_regclass('pg_catalog.pg_dist_partition') is not null then
    execute 'select exists (select from pg_dist_partition where logicalrelid = ''notification''::regclass)'
      into is_distributed;
  end if;
  if is_distributed then
    drop index notification_dedup_key_c;
    return;
  end if;
  drop trigger notification_fact on notification;
  alter table notification drop constraint notification_fact_key;
  alter table notification alter column dedup_key type text collate "C";
  alter table notification add constraint notification_fact_key unique using index notification_dedup_key_c;
  create trigger notification_fact before insert on notification
    for each row when (new.dedup_key is null)
    execute function notification_fact_to_dedup_key();
end
$$;

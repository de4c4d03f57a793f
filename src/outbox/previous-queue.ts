import type { Query } from '../db/sql.ts'

/**
 * Returns whether the database still has the queue of the previous version, in the schema `graphile_worker`. That
 * version recorded its installation of the queue. Without this record, the queue belongs to another application.
 */
async function hasPreviousQueue(sql: Query): Promise<boolean> {
  const [row] = await sql<{ exists: boolean }>`
    select case when exists (select from migration where name like 'graphile-worker@%')
      then to_regclass('graphile_worker._private_jobs') is not null else false end as exists`
  return row!.exists
}

/**
 * Creates the function that moves the mails of the previous version into the outbox. The function looks for their queue
 * only once.
 */
export function createQueueMover(): (sql: Query) => Promise<void> {
  let isInstalled: boolean | undefined
  return async sql => {
    isInstalled ??= await hasPreviousQueue(sql)
    if (isInstalled) await movePreviousQueue(sql)
  }
}

/**
 * Moves the mails that processes of the previous version have queued into the outbox. During an upgrade, workers of the
 * previous version send mails too. They lock a job while they send its mail, for at most 20 s. A job that has been
 * locked for a minute belongs to a dead worker. Another application may use the same queue, so only jobs with the code
 * of one of our addresses move.
 */
async function movePreviousQueue(sql: Query): Promise<void> {
  await sql`
    with job as (
      delete from graphile_worker._private_jobs where id in (
        select job.id
        from graphile_worker._private_jobs as job join graphile_worker._private_tasks as task on task.id = job.task_id
        where task.identifier = 'send_code' and (locked_at is null or locked_at < now() - interval '1 minute')
          and payload ->> 'code_id' in (select id::text from sign_in_code)
        limit 1000 for update of job skip locked)
      returning payload, created_at, (payload ->> 'code_id')::uuid as code_id
    )
    insert into outbox (channel, class, created_at, due, code_id, payload)
    select 'mail', case when session_id is not null then 1 when purpose = 'sign_up' then 3 else 2 end,
      created_at, created_at, code_id, payload
    from job join sign_in_code on sign_in_code.id = code_id
    on conflict (code_id) where code_id is not null do nothing`
}

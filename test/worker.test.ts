import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { suite, test } from 'node:test'
import { type Outbox, outbox } from './support/outbox.ts'
import { waitUntil } from './support/wait-until.ts'

/** Returns a task that runs until `finish` is called. */
function slowTask() {
  const begun = Promise.withResolvers<void>()
  const end = Promise.withResolvers<void>()
  let calls = 0
  return {
    begun: begun.promise,
    finish: end.resolve,
    calls: () => calls,
    async task() {
      calls += 1
      begun.resolve()
      await end.promise
    },
  }
}

/** Adds a job `witness`, and locks the job for the given worker. */
async function addLockedJob({ sql }: Outbox, worker: string): Promise<void> {
  await sql.begin(async sql => {
    const [job] = await sql<{ id: number }>`select id from graphile_worker.add_job('witness')`
    await sql`update graphile_worker._private_jobs set locked_by = ${worker}, locked_at = now() where id = ${job!.id}`
  })
}

const WORKER_PROGRAM = new URL('./support/worker.ts', import.meta.url).pathname

suite('the worker', { concurrency: true, timeout: 60_000 }, () => {
  test('four concurrent workers mail each of fifty codes exactly once', async t => {
    const box = await outbox(t)
    const addresses = Array.from({ length: 50 }, (_, index) => `player${index}@example.com`)
    await Promise.all(addresses.map(address => box.ask(address)))
    const workers = await Promise.all([box.work(), box.work(), box.work(), box.work()])
    await box.smtp.until(() => box.smtp.mails.length >= 50)
    await Promise.all(workers.map(worker => worker.stop()))
    assert.deepEqual(box.smtp.mails.flatMap(mail => mail.to).sort(), addresses.sort())
    assert.deepEqual(await box.jobs(), [])
  })

  test('if a worker is killed while it sends a mail, another worker sends this mail within 15 s', async t => {
    const box = await outbox(t, 'hold')
    await box.ask('zoe@example.com')
    const child = spawn(process.execPath, [WORKER_PROGRAM, box.url, box.smtp.url], { stdio: 'inherit' })
    await box.smtp.until(() => box.smtp.held.length === 1)
    const other = await box.work()
    const killed = performance.now()
    child.kill('SIGKILL')
    await once(child, 'exit')
    box.smtp.mode = 'accept'
    await box.smtp.until(() => box.smtp.mails.length === 1)
    assert.ok(performance.now() - killed < 15_000)
    await other.stop()
    assert.deepEqual(await box.jobs(), [])
  })

  test('a worker keeps a job that takes longer than the grace period for dead workers', async t => {
    const box = await outbox(t)
    const slow = slowTask()
    await box.sql`select graphile_worker.add_job('slow')`
    await box.work({ slow: slow.task })
    await slow.begun
    // After the slow job has begun, the test locks the job `witness` in the name of a worker that does not exist. If
    // workers released locks only by age, they would release the slow job before `witness`. So if the slow job has run only once when
    // `witness` runs, no worker has released the slow job.
    const freed = Promise.withResolvers<void>()
    await addLockedJob(box, 'gone')
    const other = await box.work({ slow: slow.task, witness: async () => freed.resolve() })
    await freed.promise
    slow.finish()
    await other.stop()
    assert.equal(slow.calls(), 1)
  })

  test('a worker that loses its connections while it completes the job of a mail does not send the mail again', async t => {
    const box = await outbox(t, 'hold')
    await box.ask('first@example.com')
    const only = await box.work()
    await box.smtp.until(() => box.smtp.held.length === 1)
    await box.sql.begin(async sql => {
      await sql`select id from graphile_worker._private_jobs for update`
      box.smtp.mode = 'accept'
      box.smtp.release()
      const backends = () => sql<{ pid: number; waits: boolean }>`
        select pid, wait_event_type = 'Lock' as waits from pg_stat_activity
        where datname = current_database() and application_name = 'courtside-worker'`
      await waitUntil(async () => (await backends()).some(backend => backend.waits))
      for (const { pid } of await backends()) await sql`select pg_terminate_backend(${pid})`
    })
    await box.ask('second@example.com')
    await box.smtp.until(() => box.smtp.mails.length === 2)
    await only.stop()
    assert.deepEqual(
      box.smtp.mails.flatMap(mail => mail.to),
      ['first@example.com', 'second@example.com'],
    )
    assert.deepEqual(await box.jobs(), [])
  })

  test('a worker runs a job that is locked for it but was never delivered to it, and runs its current job only once', async t => {
    const box = await outbox(t)
    const slow = slowTask()
    const received = Promise.withResolvers<void>()
    await box.sql`select graphile_worker.add_job('slow')`
    await box.work({ slow: slow.task, witness: async () => received.resolve() })
    await slow.begun
    const [job] = await box.sql<{ worker: string }>`
      select locked_by as worker from graphile_worker.jobs where task_identifier = 'slow'`
    await addLockedJob(box, job!.worker)
    await received.promise
    slow.finish()
    assert.equal(slow.calls(), 1)
  })

  test('a silent mail server does not delay other tasks of a worker, and the worker sends the mails when the server replies again', async t => {
    const box = await outbox(t, 'silent')
    await Promise.all(['a', 'b', 'c', 'd', 'e'].map(name => box.ask(`${name}@example.com`)))
    const reminded = Promise.withResolvers<void>()
    const only = await box.work({ game_reminder: async () => reminded.resolve() })
    await box.smtp.until(() => box.smtp.seen.connections === 4)
    await box.sql`select graphile_worker.add_job('game_reminder')`
    await reminded.promise
    assert.equal(box.smtp.seen.connections, 4)
    box.smtp.mode = 'accept'
    await box.smtp.until(() => box.smtp.mails.length === 5)
    await only.stop()
    assert.deepEqual(await box.jobs(), [])
  })

  test('a worker stops within 10 s in spite of a silent mail server, and the next worker sends the mail', async t => {
    const box = await outbox(t, 'silent')
    await box.ask('zoe@example.com')
    const first = await box.work()
    await box.smtp.until(() => box.smtp.seen.connections === 1)
    const stopped = performance.now()
    await first.stop()
    assert.ok(performance.now() - stopped < 10_000)
    box.smtp.mode = 'accept'
    await box.work()
    await box.smtp.until(() => box.smtp.mails.length === 1)
  })
})

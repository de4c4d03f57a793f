import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { suite, test } from 'node:test'
import { outbox } from './support/outbox.ts'

const worker = new URL('./support/worker.ts', import.meta.url).pathname

suite('the worker', { concurrency: true, timeout: 60_000 }, () => {
  test('four of them mail each of fifty codes once', async t => {
    const box = await outbox(t)
    const addresses = Array.from({ length: 50 }, (_, index) => `player${index}@example.com`)
    await Promise.all(addresses.map(address => box.ask(address)))
    const workers = await Promise.all([box.work(), box.work(), box.work(), box.work()])
    await box.smtp.until(() => box.smtp.mails.length >= 50)
    await Promise.all(workers.map(worker => worker.stop()))
    assert.deepEqual(box.smtp.mails.flatMap(mail => mail.to).sort(), addresses.sort())
    assert.deepEqual(await box.jobs(), [])
  })

  test('killed in the middle of a send: another sends within 15 s', async t => {
    const box = await outbox(t, 'hold')
    await box.ask('zoe@example.com')
    const child = spawn(process.execPath, [worker, box.url, box.smtp.url], { stdio: 'inherit' })
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

  test('that goes on sending for longer than others wait for a dead one keeps its job', async t => {
    const box = await outbox(t, 'hold')
    await box.ask('slow@example.com')
    const holder = await box.work()
    await box.smtp.until(() => box.smtp.held.length === 1)
    const other = await box.work()
    // The job of a worker that really is gone, locked later than ours, tells when ours would have been freed too.
    await box.sql`select graphile_worker.add_job('witness')`
    await box.sql`
      update graphile_worker._private_jobs set locked_by = 'gone', locked_at = now()
      where id = (select max(id) from graphile_worker._private_jobs)`
    const witness = Promise.withResolvers<void>()
    const watching = await box.work(undefined, { witness: async () => witness.resolve() })
    await witness.promise
    assert.equal(box.smtp.held.length, 1)
    box.smtp.release()
    await box.smtp.until(() => box.smtp.mails.length === 1)
    await Promise.all([holder.stop(), other.stop(), watching.stop()])
    assert.equal(box.smtp.mails.length, 1)
    assert.deepEqual(await box.jobs(), [])
  })

  test('whose connections are all cut while it sends ticks that mail off, and sends the next', async t => {
    const box = await outbox(t, 'hold')
    await box.ask('first@example.com')
    const holder = await box.work()
    await box.smtp.until(() => box.smtp.held.length === 1)
    const cut = await box.sql<{ done: boolean }>`
      select pg_terminate_backend(pid) as done from pg_stat_activity
      where datname = current_database() and application_name = 'courtside-worker'`
    assert.ok(cut.length >= 2)
    box.smtp.mode = 'accept'
    box.smtp.release()
    await box.ask('second@example.com')
    await box.smtp.until(() => box.smtp.mails.length === 2)
    await holder.stop()
    assert.deepEqual(
      box.smtp.mails.flatMap(mail => mail.to),
      ['first@example.com', 'second@example.com'],
    )
    assert.deepEqual(await box.jobs(), [])
  })

  test('frees a job that was locked for it but that it never heard of', async t => {
    const box = await outbox(t, 'hold')
    await box.ask('known@example.com')
    const only = await box.work()
    await box.smtp.until(() => box.smtp.held.length === 1)
    await box.sql`
      with known as (select locked_by from graphile_worker.jobs where locked_by is not null), lost as (
        insert into graphile_worker._private_jobs (task_id, payload, locked_by, locked_at)
        select task_id, '{"code_id": "lost"}', jobs.locked_by, now()
        from graphile_worker._private_jobs as jobs join known using (locked_by)
        returning id
      )
      select id from lost`
    const dropped = Promise.withResolvers<void>()
    box.onLog(line => /payload/.test(String(line.msg)) && dropped.resolve())
    await dropped.promise
    assert.equal(box.smtp.held.length, 1)
    box.smtp.release()
    await only.stop()
    assert.equal(box.smtp.mails.length, 1)
    assert.deepEqual(await box.jobs(), [])
  })

  test('is not held up in its other tasks by a mail server that says nothing, and leaves that one after a while', async t => {
    const box = await outbox(t, 'silent')
    await Promise.all(['a', 'b', 'c', 'd', 'e'].map(name => box.ask(`${name}@example.com`)))
    const reminded = Promise.withResolvers<void>()
    const only = await box.work(undefined, { game_reminder: async () => reminded.resolve() })
    await box.smtp.until(() => box.smtp.seen.connections === 4)
    await box.sql`select graphile_worker.add_job('game_reminder')`
    await reminded.promise
    assert.equal(box.smtp.seen.connections, 4)
    box.smtp.mode = 'accept'
    await box.smtp.until(() => box.smtp.mails.length === 5)
    await only.stop()
    assert.deepEqual(await box.jobs(), [])
  })

  test('stops within 10 s although a mail server says nothing, and leaves the mail to the next', async t => {
    const box = await outbox(t, 'silent')
    await box.ask('zoe@example.com')
    const first = await box.work()
    await box.smtp.until(() => box.smtp.seen.connections === 1)
    const asked = performance.now()
    await first.stop()
    assert.ok(performance.now() - asked < 10_000)
    box.smtp.mode = 'accept'
    await box.work()
    await box.smtp.until(() => box.smtp.mails.length === 1)
  })
})

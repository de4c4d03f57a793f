import assert from 'node:assert/strict'
import { suite, type TestContext, test } from 'node:test'
import { insertUser } from './support/factories.ts'
import { NOW, type Outbox, outbox } from './support/outbox.ts'
import type { Mode } from './support/smtp.ts'

const CROWD = Buffer.alloc(16, 1)
const QUIET = Buffer.alloc(16, 2)

/** Inserts an account with a session for each address. */
async function addKnownClients(
  sql: Outbox['sql'],
  addresses: string[],
): Promise<{ email: string; sessionId: string }[]> {
  const known = []
  for (const email of addresses) {
    const userId = await insertUser(sql, { email, firstName: 'Zoé', lastName: 'Martin', locale: 'fr', now: NOW })
    const [session] = await sql<{ id: string }>`
      insert into session (user_id, created_at, expires_at, issued_at)
      values (${userId}, ${NOW}, ${new Date(NOW.getTime() + 3_600_000)}, ${NOW}) returning id`
    known.push({ email, sessionId: session!.id })
  }
  return known
}

const addressList = (name: string, count: number) =>
  Array.from({ length: count }, (_, index) => `${name}${index}@example.com`)

async function boxWith(t: TestContext, count: number, mode?: Mode) {
  const box = await outbox(t, mode)
  const crowd = await addKnownClients(box.sql, addressList('crowd', count))
  for (const { email, sessionId } of crowd) await box.ask(email, { profile: null, sessionId, network: CROWD })
  return box
}

suite('mails to known clients', { concurrency: true, timeout: 120_000 }, () => {
  test('only five waiting mails of a network go first; further ones have the class of the accounts', async t => {
    const box = await boxWith(t, 20)
    const classes = () => box.sql`
      select class, network, count(*)::int as count from outbox group by class, network order by class, network`
    assert.deepEqual(await classes(), [
      { class: 1, network: CROWD, count: 5 },
      { class: 2, network: CROWD, count: 15 },
    ])
    const [quiet, next] = await addKnownClients(box.sql, ['quiet@example.com', 'next@example.com'])
    await box.ask(quiet!.email, { profile: null, sessionId: quiet!.sessionId, network: QUIET })
    await box.sql`delete from outbox where id = (select min(id) from outbox)`
    await box.ask(next!.email, { profile: null, sessionId: next!.sessionId, network: CROWD })
    assert.deepEqual(await classes(), [
      { class: 1, network: CROWD, count: 5 },
      { class: 1, network: QUIET, count: 1 },
      { class: 2, network: CROWD, count: 15 },
    ])
  })

  test('a mail moves one class down after each failed attempt, but not below the sign-ups', async t => {
    const box = await boxWith(t, 1, 'defer')
    const classes = [1]
    const worker = box.work()
    for (let attempts = 1; attempts <= 3; attempts += 1) {
      await box.untilDeferred(attempts)
      const [row] = await box.sql<{ class: number }>`select class from outbox`
      classes.push(row!.class)
      await box.sql`update outbox set due = ${NOW} where not ready`
    }
    await worker.stop()
    assert.deepEqual(classes, [1, 2, 3, 3])
  })

  test('300 known clients of one network do not keep the code of a user without a token waiting', async t => {
    const box = await boxWith(t, 300, 'slow')
    await box.register('owner@example.com', 'Anne')
    box.work()
    await box.smtp.until(() => box.smtp.mails.length > 0)
    await box.ask('owner@example.com', { profile: null, network: QUIET })
    const before = box.smtp.mails.length
    const isOwners = (mail: { to: string[] }) => mail.to.includes('owner@example.com')
    await box.smtp.until(() => box.smtp.mails.some(isOwners))
    // The worker polls each second, and may have claimed a few other rows before.
    assert.ok(box.smtp.mails.findIndex(isOwners) - before < 60)
  })
})

import assert from 'node:assert/strict'
import { beforeEach, suite, test } from 'node:test'
import type { Mail } from '../src/mail/mailer.ts'
import { createSmtpMailer } from '../src/mail/smtp.ts'
import { recordAttempt, withdrawBounces } from '../src/reach/bounces.ts'
import { harness } from './support/app.ts'
import { createSender, keepingMailer, PRODUCTION } from './support/digests.ts'
import { makeNotificationsSilently, makeUser } from './support/factories.ts'
import { smtpServer } from './support/smtp.ts'

const h = harness(PRODUCTION)
const HOUR_MS = 3_600_000

beforeEach(async () => {
  await h.database.sql`delete from digest_attempt`
})

async function makeReader(): Promise<number> {
  const { id } = await makeUser(h)
  await h.database.sql`insert into mail_state (user_id) values (${id})`
  return id
}

async function readBounced(userIds: readonly number[]): Promise<boolean[]> {
  const rows = await h.database.sql<{ user_id: number; bounced: boolean }>`
    select user_id, bounced_at is not null as bounced from mail_state where user_id = any(${userIds}::bigint[])`
  return userIds.map(id => rows.find(row => row.user_id === id)!.bounced)
}

/** Returns a delivery of one mail to a reader. */
async function makeDelivery(userId: number) {
  const ids = await makeNotificationsSilently(h, userId, 1, { type: 'score_finalized' })
  const payload = { notification_ids: ids, urgent_ids: [], urgent: false }
  await h.database.sql`
    insert into notification_preference (user_id, types, updated_at)
    values (${userId}, '{"score_finalized": {"email": true}}', ${h.clock.now()}) on conflict do nothing`
  const lease = '00000000-0000-4000-8000-000000000000'
  return { id: 1, lease, created_at: h.clock.now(), attempts: 1, user_id: userId, payload }
}

const MAIL: Mail = { to: 'zoe@example.com', subject: 'a', text: 'a', html: 'a' }

suite('a hard bounce', () => {
  const hard = ['5.1.1', '5.1.2', '5.1.3', '5.1.6', '5.1.10', '5.2.1'].flatMap(status => [
    [550, status] as const,
    [553, status] as const,
  ])
  const others = [
    [550, ''],
    [550, '5.7.1'],
    [550, '5.1.8'],
    [550, '5.2.2'],
    [550, '5.1.11'],
    [552, '5.1.1'],
    [554, '5.1.1'],
    [450, '4.1.1'],
    [451, ''],
  ] as const
  test('is a refusal at RCPT TO that says that the address does not work', async t => {
    const server = await smtpServer('reply')
    t.after(() => server.close())
    const mailer = createSmtpMailer(server.url, { from: 'a@example.com' })
    const refuse = async ([code, status]: readonly [number, string]) => {
      server.reply = [code, status && `${status} `]
      return mailer.send(MAIL).then(
        () => assert.fail('the mail was accepted'),
        error => error.isHardBounce as boolean,
      )
    }
    for (const reply of hard) assert.equal(await refuse(reply), true, reply.join(' '))
    for (const reply of others) assert.equal(await refuse(reply), false, reply.join(' '))
  })

  test('stops the mails to the address until the next sign-in, and codes still go', async t => {
    const server = await smtpServer('reply')
    t.after(() => server.close())
    server.reply = [550, '5.1.1 ']
    const { id, email } = await makeUser(h)
    await h.database.sql`insert into mail_state (user_id) values (${id})`
    h.clock.advance(1000)
    const send = createSender(h, createSmtpMailer(server.url, { from: 'a@example.com' }))
    assert.equal((await send(await makeDelivery(id))).outcome, 'refused')
    assert.deepEqual(await readBounced([id]), [true])
    const { mailer, mails } = keepingMailer()
    const sendLater = createSender(h, mailer)
    assert.equal((await sendLater(await makeDelivery(id))).outcome, 'bounced')
    assert.equal((await h.call('POST', '/api/v1/auth/request-otp', { body: { email } })).status, 200)
    assert.equal((await h.database.sql`select id from outbox where code_id is not null`).length, 1)
    h.clock.advance(1000)
    const now = h.clock.now()
    await h.database.sql`
      insert into session (user_id, created_at, expires_at, issued_at) values (${id}, ${now}, ${now}, ${now})`
    assert.equal((await sendLater(await makeDelivery(id))).outcome, 'delivered')
    assert.equal(mails.length, 1)
    const attempts = await h.database.sql`select bounced from digest_attempt where user_id = ${id} order by id`
    assert.deepEqual(
      attempts.map(row => row.bounced),
      [true, false],
    )
  })
})

suite('many bounces', () => {
  /** Records attempts of different readers. @returns the readers whose address bounced */
  async function record(delivered: number, bounced: number): Promise<number[]> {
    const now = h.clock.now()
    const reader = await makeReader()
    for (let count = 0; count < delivered; count += 1) await recordAttempt(h.database.sql, reader, false, now)
    const readers: number[] = []
    for (let count = 0; count < bounced; count += 1) readers.push(await makeReader())
    for (const each of readers) await recordAttempt(h.database.sql, each, true, now)
    return readers
  }

  test('stay if there are fewer than 20 in an hour', async () => {
    const readers = await record(0, 19)
    assert.equal(await withdrawBounces(h.database.sql, h.clock.now()), 0)
    assert.ok((await readBounced(readers)).every(isBounced => isBounced))
  })

  test('stay if they are 5 % of the mails of an hour', async () => {
    const readers = await record(380, 20)
    assert.equal(await withdrawBounces(h.database.sql, h.clock.now()), 0)
    assert.ok((await readBounced(readers)).every(isBounced => isBounced))
  })

  test('are taken back if they are more than 5 % and at least 20, but those of the hour before stay', async () => {
    const [old] = await record(0, 1)
    h.clock.advance(HOUR_MS + 1)
    const readers = await record(379, 20)
    assert.equal(await withdrawBounces(h.database.sql, h.clock.now()), 20)
    assert.ok((await readBounced(readers)).every(isBounced => !isBounced))
    assert.deepEqual(await readBounced([old!]), [true])
  })

  test('are taken back by the worker that records the 20th, with an error in the log and in the metrics', async t => {
    const server = await smtpServer('reply')
    t.after(() => server.close())
    server.reply = [550, '5.1.1 ']
    let withdrawn = 0
    const mailer = createSmtpMailer(server.url, { from: 'a@example.com' })
    const send = createSender(h, mailer, count => {
      withdrawn += count
    })
    const readers = await record(0, 18)
    for (const reader of [await makeReader(), await makeReader()]) {
      assert.equal(withdrawn, 0)
      await send(await makeDelivery(reader))
      readers.push(reader)
    }
    assert.equal(withdrawn, 20)
    assert.deepEqual(new Set(await readBounced(readers)), new Set([false]))
    const line = h.logged.findLast(({ level }) => level === 50)
    assert.equal(line!.msg, 'the mail server refuses too many known addresses, so their bounces do not count')
  })

  test('are taken back although attempts failed without an answer about the address', async t => {
    const server = await smtpServer('refuse')
    t.after(() => server.close())
    const send = createSender(h, createSmtpMailer(server.url, { from: 'a@example.com' }))
    const readers = await record(379, 18)
    const last = [await makeReader(), await makeReader()]
    for (const mode of ['refuse', 'defer', 'block'] as const) {
      server.mode = mode
      for (const reader of last) assert.equal((await send(await makeDelivery(reader))).outcome, 'failed')
    }
    server.mode = 'reply'
    server.reply = [550, '5.1.1 ']
    for (const reader of last) assert.equal((await send(await makeDelivery(reader))).outcome, 'refused')
    assert.deepEqual(new Set(await readBounced([...readers, ...last])), new Set([false]))
  })

  test('of workers that record them at the same time are all taken back', async () => {
    for (let round = 0; round < 20; round += 1) {
      await h.database.sql`delete from digest_attempt`
      const readers = await record(0, 18)
      const last = [await makeReader(), await makeReader()]
      const now = h.clock.now()
      await Promise.all(
        last.map(async reader => {
          await recordAttempt(h.database.sql, reader, true, now)
          await withdrawBounces(h.database.sql, now)
        }),
      )
      assert.deepEqual(new Set(await readBounced([...readers, ...last])), new Set([false]), `round ${round}`)
      h.clock.advance(HOUR_MS + 1)
    }
  })
})

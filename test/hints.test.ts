import assert from 'node:assert/strict'
import { describe, mock, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { pino } from 'pino'
import { Client } from '../src/db/client.ts'
import { createHints, formatPayloads, inboxHint, OUTBOX_HINT, readHints } from '../src/db/hints.ts'
import { connect } from '../src/db/sql.ts'
import { startSchedule } from '../src/games/schedule.ts'
import { harness } from './support/app.ts'
import { makeNotifications, makeUser } from './support/factories.ts'
import { cloudEvent, newGameId, report } from './support/games.ts'
import { listenForHints } from './support/hints.ts'
import { createMuteRole } from './support/mute-role.ts'
import { newEmail, profile } from './support/scenario.ts'
import { isHint } from './support/statements.ts'
import { waitUntil } from './support/wait-until.ts'

const h = harness()
const log = pino({ level: 'silent' })

const requestCode = (body: unknown) => h.call('POST', '/api/v1/auth/request-otp', { body })

describe('a write notifies only after its commit', () => {
  const hints = listenForHints(h)

  /** Runs `work`, and returns the texts of all statements that contain NOTIFY, and the hints that followed. */
  async function observe(work: () => Promise<unknown>) {
    hints.payloads.length = 0
    const sent = mock.method(Client.prototype, 'query').mock
    try {
      await work()
      const payloads = await hints.take()
      const texts = sent.calls.map(call => String((call.arguments[0] as { text?: string }).text))
      assert.ok(texts.length > 1)
      return { notifying: texts.filter(text => /notify/i.test(text)), payloads }
    } finally {
      sent.restore()
    }
  }

  async function assertHint(work: () => Promise<unknown>, hint: string): Promise<void> {
    const { notifying, payloads } = await observe(work)
    for (const text of notifying) assert.ok(isHint(text), text)
    assert.ok(
      payloads.some(payload => payload.split(',').some(item => item.split(':')[0] === hint)),
      `${payloads}`,
    )
  }

  test('a request for a code sends the hint about the outbox, also if it stores a decoy', async () => {
    await assertHint(() => requestCode(profile(newEmail())), 'o')
    await assertHint(() => requestCode({ email: newEmail() }), 'o')
  })

  test('a request that finds nothing to change sends no hint', async () => {
    const user = await makeUser(h)
    const [id] = await makeNotifications(h, user.id, 1)
    await h.call('POST', `/api/v1/notifications/${id}/read`, { token: user.token })
    // A hint is sent some milliseconds after the answer.
    const settle = () => delay(200).then(hints.settle)
    await settle()
    hints.payloads.length = 0
    for (const [method, path] of [
      ['POST', '999999/read'],
      ['DELETE', '999999'],
      ['POST', 'read-all'],
    ] as const) {
      await h.call(method, `/api/v1/notifications/${path}`, { token: user.token })
    }
    await settle()
    assert.deepEqual(hints.payloads, [])
  })

  test('marking, marking all and deleting send the hint about the inbox of the user', async () => {
    const user = await makeUser(h)
    const [first, second, third] = await makeNotifications(h, user.id, 3)
    await hints.take()
    for (const [method, path] of [
      ['POST', `${first}/read`],
      ['DELETE', `${second}`],
      ['POST', 'read-all'],
      ['DELETE', `${third}`],
    ] as const) {
      const work = () => h.call(method, `/api/v1/notifications/${path}`, { token: user.token })
      await assertHint(work, `${user.id}`)
    }
  })

  test('the intake and the schedule send the hints about the inboxes of all recipients', async () => {
    const [creator, player] = [await makeUser(h), await makeUser(h)]
    const startsAt = new Date(h.clock.now().getTime() + 3_600_000).toISOString()
    const players = { creator_id: creator.id, player_ids: [creator.id, player.id], actor_id: player.id }
    const event = cloudEvent('game_joined', { game_id: newGameId(), ...players, starts_at: startsAt })
    await assertHint(() => report(h, event), `${creator.id}`)
    h.clock.advance(3_600_000)
    const clock = () => ({ now: h.clock.now(), timeZone: 'Europe/Paris' })
    await assertHint(async () => {
      let fired = 0
      const schedule = startSchedule(h.ctx, clock, h.ctx.log, () => {
        fired += 1
      })
      await waitUntil(() => fired > 0)
      await schedule.stop()
    }, `${player.id}`)
  })

  test('fifty concurrent requests for a code cause fewer than fifty hints', async () => {
    hints.payloads.length = 0
    await Promise.all(Array.from({ length: 50 }, () => requestCode(profile(newEmail()))))
    await waitUntil(() => hints.payloads.length > 0)
    // The last hint arrives before the reply to `select 1`.
    await h.ctx.sql`select 1`
    await hints.settle()
    assert.ok(hints.payloads.length < 50, `${hints.payloads.length}`)
  })
})

describe('the sender of hints', () => {
  const hints = listenForHints(h)

  test('a payload contains the ids of users with commas, and first `o` if the outbox has new rows', () => {
    assert.deepEqual(formatPayloads(new Set([inboxHint(7), OUTBOX_HINT, inboxHint(8, 99)])), ['o,7,8:99'])
    assert.deepEqual(readHints('o,7,8:99'), { hasDelivery: true, userIds: [7, 8] })
    assert.deepEqual(readHints('7'), { hasDelivery: false, userIds: [7] })
    assert.deepEqual(readHints('o'), { hasDelivery: true, userIds: [] })
  })

  test('the hints for a hundred thousand users are split into payloads that PostgreSQL accepts', async () => {
    const users = Array.from({ length: 100_000 }, (_, index) => index + 1_000_000)
    const all = [...users.map(id => inboxHint(id)), OUTBOX_HINT]
    const payloads = formatPayloads(new Set(all))
    assert.ok(payloads.every(payload => payload.length < 8_000))
    assert.ok(payloads.length < 110, `${payloads.length}`)
    assert.deepEqual(
      payloads.flatMap(payload => readHints(payload).userIds),
      users,
    )
    const { sql } = h.database
    const sender = createHints(sql, log)
    hints.payloads.length = 0
    await sender.sendAfter(async changed => {
      for (const hint of all) changed.add(hint)
    })
    await sender.close()
    assert.deepEqual(await hints.take(payloads.length), payloads)
  })

  test('a NOTIFY that fails is sent again until it succeeds, together with the hints of later writes', async () => {
    const mute = await createMuteRole(h.database)
    const sql = connect(mute.url)
    const warnings: unknown[] = []
    const sender = createHints(sql, { warn: (fields: unknown) => warnings.push(fields) } as never)
    hints.payloads.length = 0
    await sender.sendAfter(async changed => changed.add(inboxHint(7)))
    await waitUntil(() => warnings.length > 0)
    await sender.sendAfter(async changed => changed.add(inboxHint(8)))
    await mute.allowNotify()
    assert.deepEqual(await hints.take(), ['7,8'])
    assert.equal(warnings.length, 1)
    await sender.close()
    await sql.close()
    await mute.drop()
  })

  test('a hint is sent immediately if none was sent in the last milliseconds, and later hints are sent together', async () => {
    const sender = createHints(h.database.sql, log)
    hints.payloads.length = 0
    const ids = Array.from({ length: 20 }, (_, index) => index + 10)
    for (const id of ids) await sender.sendAfter(async changed => changed.add(inboxHint(id)))
    assert.deepEqual(await hints.take(2), ['10', ids.slice(1).join(',')])
    await sender.close()
  })

  test('a process that stops sends its waiting hints', async () => {
    const sender = createHints(h.database.sql, log)
    hints.payloads.length = 0
    await sender.sendAfter(async changed => changed.add(inboxHint(9)))
    await sender.close()
    assert.deepEqual(await hints.take(), ['9'])
  })

  test('a write that fails before its commit sends no hint', async () => {
    const sender = createHints(h.database.sql, log)
    hints.payloads.length = 0
    const failing = sender.sendAfter(async changed => {
      changed.add(inboxHint(9))
      await h.database.sql`select 1 / 0`
    })
    await assert.rejects(failing, { code: '22012' })
    await sender.close()
    await hints.settle()
    assert.deepEqual(hints.payloads, [])
  })

  /** Runs a write whose connection ends, so its outcome is unknown, and checks that its hint is sent. */
  async function sendWithLostReply(userId: number) {
    const sender = createHints(h.database.sql, log)
    hints.payloads.length = 0
    const losing = sender.sendAfter(async changed => {
      changed.add(inboxHint(userId))
      await h.database.sql`select pg_terminate_backend(pg_backend_pid())`
    })
    await assert.rejects(losing, { code: 'unavailable' })
    assert.deepEqual(await hints.take(), [`${userId}`])
    return sender
  }

  test('if the reply to a commit is lost, its hint is sent immediately and again after 10 s', async () => {
    const sender = await sendWithLostReply(10)
    assert.deepEqual(await hints.take(), ['10'])
    await sender.close()
  })

  test('a process that stops repeats a hint immediately, although its 10 s wait has not ended', async () => {
    const sender = await sendWithLostReply(11)
    await sender.close()
    assert.deepEqual(await hints.take(), ['11'])
  })
})

import assert from 'node:assert/strict'
import { beforeEach, suite, test } from 'node:test'
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises'
import { type Mailer, MailFailure } from '../src/mail/mailer.ts'
import { createSmtpMailer } from '../src/mail/smtp.ts'
import type { NotificationType } from '../src/notification-types.ts'
import { pauseEmail, update } from '../src/reach/preferences.ts'
import { harness } from './support/app.ts'
import { createSender, DAY_MS, deliveries, HOUR_MS, keepingMailer, MINUTE_MS, PRODUCTION } from './support/digests.ts'
import { makeNotificationsSilently, makeUser } from './support/factories.ts'
import { cloudEvent, newGameId, report } from './support/games.ts'
import { startProxy } from './support/proxy.ts'
import { smtpServer } from './support/smtp.ts'

const h = harness(PRODUCTION)
const steps = deliveries(h)

beforeEach(async () => {
  // A Saturday at noon in Paris, outside quiet hours.
  h.clock.set('2026-11-28T11:00:00.000Z')
  await h.database.sql`delete from outbox`
  await h.database.sql`delete from waiting_mail`
})

type Reader = { id: number; token: string }

/** Stores notifications that wait for a mail, as the expansion does. @returns their ids */
async function makeWaiting(
  { id: userId }: Reader,
  type: NotificationType = 'game_cancelled',
  { count = 1, urgent = false, gameId = newGameId(), startsAt = '2026-12-05T10:00:00+00:00' } = {},
): Promise<number[]> {
  const data = { game_id: gameId, ...(startsAt !== '' && { starts_at: startsAt }) }
  const ids = await makeNotificationsSilently(h, userId, count, { type, data })
  const now = h.clock.now()
  const lookAt = new Date(now.getTime() + (urgent ? 2 : 15) * MINUTE_MS)
  await h.database.sql`insert into mail_state (user_id) values (${userId}) on conflict (user_id) do nothing`
  await h.database.sql`
    insert into waiting_mail (user_id, notification_id, game_id, urgent, created_at, look_at)
    select ${userId}, id, ${gameId}, ${urgent}, ${now}, ${lookAt} from unnest(${ids}::bigint[]) as id`
  return ids
}

async function sweepAfter(ms: number) {
  h.clock.advance(ms)
  while ((await steps.sweep()) > 0);
}

const readMails = async ({ id }: Reader) =>
  (await steps.readMails(id)).map(({ class: mailClass, payload }) => ({ class: mailClass, ...payload }))

const ordinary = (ids: number[], urgentIds: number[] = []) => ({
  class: urgentIds.length > 0 ? 4 : 5,
  notification_ids: ids,
  urgent_ids: urgentIds,
  urgent: false,
})
const urgentMail = (ids: number[]) => ({ class: 4, notification_ids: ids, urgent_ids: ids, urgent: true })

suite('an unread notification', () => {
  test('causes a mail after 15 minutes, which has 24 hours to leave', async () => {
    const reader = await makeUser(h)
    const ids = await makeWaiting(reader)
    await sweepAfter(15 * MINUTE_MS - 1)
    assert.deepEqual(await readMails(reader), [])
    await sweepAfter(1)
    assert.deepEqual(await readMails(reader), [ordinary(ids)])
    assert.deepEqual(await steps.readWaiting(reader.id), [])
    const [mail] = await steps.readMails(reader.id)
    assert.equal(mail!.deadline.getTime(), h.clock.now().getTime() + DAY_MS)
  })

  test('causes a mail after 2 minutes if it is urgent', async () => {
    const reader = await makeUser(h)
    const ids = await makeWaiting(reader, 'game_cancelled', { urgent: true })
    await sweepAfter(2 * MINUTE_MS - 1)
    assert.deepEqual(await readMails(reader), [])
    await sweepAfter(1)
    assert.deepEqual(await readMails(reader), [urgentMail(ids)])
  })

  const reasons: Record<string, (reader: Reader, id: number) => Promise<unknown>> = {
    'it was read': ({ token }, id) => h.call('POST', `/api/v1/notifications/${id}/read`, { token }),
    'it was deleted': ({ token }, id) => h.call('DELETE', `/api/v1/notifications/${id}`, { token }),
    'mails about its type are off': ({ id }) => pauseEmail(h.database.sql, id, 'game_cancelled', h.clock.now()),
    'all mails are paused': ({ id }) => pauseEmail(h.database.sql, id, undefined, h.clock.now()),
    'the address bounced after the last sign-in': ({ id }) =>
      h.database.sql`update mail_state set bounced_at = ${h.clock.now()} where user_id = ${id}`,
    'it is older than 72 hours': async ({ id }) => {
      await h.database
        .sql`update waiting_mail set look_at = ${new Date(h.clock.now().getTime() + 73 * HOUR_MS)} where user_id = ${id}`
      h.clock.advance(73 * HOUR_MS)
    },
  }
  for (const [reason, change] of Object.entries(reasons)) {
    test(`causes no mail if ${reason}`, async () => {
      const reader = await makeUser(h)
      const [id] = await makeWaiting(reader)
      await change(reader, id!)
      await sweepAfter(15 * MINUTE_MS)
      assert.deepEqual(await readMails(reader), [])
      assert.deepEqual(await steps.readWaiting(reader.id), [])
    })
  }

  test('causes no mail if it is stale', async () => {
    const reader = await makeUser(h)
    const gameId = newGameId()
    const game = { game_id: gameId, creator_id: reader.id, player_ids: [reader.id], starts_at: '2026-12-05T10:00:00Z' }
    await report(h, cloudEvent('game_created', game))
    await makeWaiting(reader, 'game_reminder', { gameId })
    await report(h, cloudEvent('game_updated', { ...game, starts_at: '2026-12-06T10:00:00Z' }))
    await sweepAfter(15 * MINUTE_MS)
    assert.deepEqual(await readMails(reader), [])
    assert.deepEqual(await steps.readWaiting(reader.id), [])
  })

  test('causes a mail again after the next sign-in from an address that bounced', async () => {
    const reader = await makeUser(h)
    const ids = await makeWaiting(reader)
    await h.database.sql`update mail_state set bounced_at = ${h.clock.now()} where user_id = ${reader.id}`
    h.clock.advance(1000)
    const now = h.clock.now()
    await h.database.sql`
      insert into session (user_id, created_at, expires_at, issued_at) values (${reader.id}, ${now}, ${now}, ${now})`
    await sweepAfter(15 * MINUTE_MS)
    assert.deepEqual(await readMails(reader), [ordinary(ids)])
  })
})

suite('the limits of mails', () => {
  test('a person gets one ordinary mail in 24 hours, and the next one lists all that became due meanwhile', async () => {
    const reader = await makeUser(h)
    const first = await makeWaiting(reader)
    await sweepAfter(15 * MINUTE_MS)
    const later: number[] = []
    // 11:15 until 17:15 in UTC
    for (let hour = 0; hour < 6; hour += 1) {
      later.push(...(await makeWaiting(reader)))
      await sweepAfter(HOUR_MS)
    }
    assert.deepEqual(await readMails(reader), [ordinary(first)])
    await sweepAfter(18 * HOUR_MS - 1)
    assert.deepEqual(await readMails(reader), [ordinary(first)])
    await sweepAfter(1)
    assert.deepEqual(await readMails(reader), [ordinary(first), ordinary(later)])
  })

  test('an urgent mail leaves beside the limit of ordinary mails, and takes only urgent notifications', async () => {
    const reader = await makeUser(h)
    const first = await makeWaiting(reader)
    await sweepAfter(15 * MINUTE_MS)
    const held = await makeWaiting(reader)
    await sweepAfter(15 * MINUTE_MS)
    const urgent = await makeWaiting(reader, 'game_cancelled', { urgent: true })
    await sweepAfter(2 * MINUTE_MS)
    assert.deepEqual(await readMails(reader), [ordinary(first), urgentMail(urgent)])
    assert.deepEqual(
      (await steps.readWaiting(reader.id)).map(row => row.notification_id),
      held,
    )
  })

  test('a person gets one urgent mail in 10 minutes', async () => {
    const reader = await makeUser(h)
    const [first, second, third] = [
      await makeWaiting(reader, 'game_cancelled', { urgent: true }),
      ...(await sweepAfter(2 * MINUTE_MS).then(async () => [
        await makeWaiting(reader, 'game_cancelled', { urgent: true }),
        await makeWaiting(reader, 'game_cancelled', { urgent: true }),
      ])),
    ]
    const { mailer } = keepingMailer()
    assert.deepEqual(await readMails(reader), [urgentMail(first!)])
    assert.deepEqual(await steps.mail(mailer), ['delivered'])
    await sweepAfter(10 * MINUTE_MS - 1)
    assert.deepEqual(await readMails(reader), [])
    await sweepAfter(1)
    assert.deepEqual(await readMails(reader), [urgentMail([...second!, ...third!])])
  })

  test('urgent mails do not gather in the outbox while the mail server is down, and leave 10 minutes apart', async () => {
    const reader = await makeUser(h)
    const kept = keepingMailer()
    kept.failure = new MailFailure('ECONNECTION', false)
    const ids: number[] = []
    for (let minute = 0; minute < 60; minute += 5) {
      ids.push(...(await makeWaiting(reader, 'game_cancelled', { urgent: true })))
      await sweepAfter(5 * MINUTE_MS)
      await steps.mail(kept.mailer)
    }
    assert.deepEqual(await readMails(reader), [urgentMail([ids[0]!])])
    kept.failure = undefined
    h.clock.advance(15 * MINUTE_MS)
    assert.deepEqual(await steps.mail(kept.mailer), ['delivered'])
    await sweepAfter(10 * MINUTE_MS - 1)
    assert.deepEqual(await readMails(reader), [])
    await sweepAfter(1)
    assert.deepEqual(await readMails(reader), [urgentMail(ids.slice(1))])
  })

  test('an ordinary mail that leaves late makes the next one wait for 24 hours from then', async () => {
    const reader = await makeUser(h)
    const first = await makeWaiting(reader)
    const kept = keepingMailer()
    kept.failure = new MailFailure('ECONNECTION', false)
    await sweepAfter(15 * MINUTE_MS)
    await steps.mail(kept.mailer)
    kept.failure = undefined
    h.clock.advance(8 * HOUR_MS)
    assert.deepEqual(await readMails(reader), [ordinary(first)])
    assert.deepEqual(await steps.mail(kept.mailer), ['delivered'])
    const second = await makeWaiting(reader)
    await sweepAfter(DAY_MS - 1)
    assert.deepEqual(await readMails(reader), [])
    await sweepAfter(1)
    assert.deepEqual(await readMails(reader), [ordinary(second)])
  })

  test('the time of a mail that a clock two days ahead has stored holds no later mail', async () => {
    const reader = await makeUser(h)
    const jump = () => h.database.sql`
      update mail_state set ordinary_at = ${new Date(h.clock.now().getTime() + 2 * DAY_MS)} where user_id = ${reader.id}`
    const ids = await makeWaiting(reader)
    await jump()
    await sweepAfter(15 * MINUTE_MS)
    assert.deepEqual(await readMails(reader), [ordinary(ids)])
    await jump()
    assert.deepEqual(await steps.mail(keepingMailer().mailer), ['delivered'])
    const [state] = await h.database.sql<{ ordinary_at: Date }>`
      select ordinary_at from mail_state where user_id = ${reader.id}`
    assert.deepEqual(state!.ordinary_at, h.clock.now())
  })

  test('an ordinary mail takes urgent notifications that are due too', async () => {
    const reader = await makeUser(h)
    const other = await makeWaiting(reader)
    h.clock.advance(14 * MINUTE_MS)
    const urgent = await makeWaiting(reader, 'game_cancelled', { urgent: true })
    await sweepAfter(2 * MINUTE_MS)
    assert.deepEqual(await readMails(reader), [ordinary([...other, ...urgent], urgent)])
  })
})

suite('quiet hours', () => {
  const night = '2026-11-28T22:00:00.000Z'
  const morning = new Date('2026-11-29T07:00:00.000Z')

  test('hold a mail until their end', async () => {
    const reader = await makeUser(h)
    h.clock.set(night)
    const ids = await makeWaiting(reader)
    await sweepAfter(15 * MINUTE_MS)
    assert.deepEqual(await readMails(reader), [])
    assert.deepEqual(
      (await steps.readWaiting(reader.id)).map(row => row.look_at),
      [morning],
    )
    h.clock.set(morning)
    await sweepAfter(0)
    assert.deepEqual(await readMails(reader), [ordinary(ids)])
  })

  test('hold a mail about a game at most until an hour before its start, also if the game moves meanwhile', async () => {
    const reader = await makeUser(h)
    h.clock.set(night)
    const gameId = newGameId()
    const game = { game_id: gameId, creator_id: reader.id, player_ids: [reader.id] }
    await report(h, cloudEvent('game_created', { ...game, starts_at: '2026-11-29T12:00:00Z' }))
    const ids = await makeWaiting(reader, 'game_cancelled', { gameId })
    await sweepAfter(15 * MINUTE_MS)
    await report(h, cloudEvent('game_updated', { ...game, starts_at: '2026-11-29T02:00:00Z' }))
    await sweepAfter(0)
    const [waiting] = await steps.readWaiting(reader.id)
    assert.deepEqual(waiting!.look_at, new Date('2026-11-29T01:00:00Z'))
    h.clock.set(waiting!.look_at)
    await sweepAfter(0)
    assert.deepEqual(await readMails(reader), [ordinary(ids)])
  })

  test('that are switched off let the waiting mail leave, but not before the 15 minutes', async () => {
    const reader = await makeUser(h)
    h.clock.set(night)
    const early = await makeWaiting(reader)
    await sweepAfter(15 * MINUTE_MS)
    const late = await makeWaiting(reader, 'game_cancelled', { urgent: true })
    const settings = { defaults: h.ctx.config.preferenceDefaults, now: h.clock.now() }
    await update(h.database.sql, reader.id, { quietHours: { enabled: false } }, settings)
    await sweepAfter(0)
    assert.deepEqual(await readMails(reader), [ordinary(early)])
    await sweepAfter(2 * MINUTE_MS)
    assert.deepEqual(await readMails(reader), [ordinary(early), urgentMail(late)])
  })

  test('that begin before the mail leaves give its notifications back, and the mail does not count in the limits', async () => {
    const reader = await makeUser(h)
    h.clock.set('2026-11-28T20:44:59.000Z')
    const ids = await makeWaiting(reader)
    await sweepAfter(15 * MINUTE_MS)
    assert.deepEqual(await readMails(reader), [ordinary(ids)])
    h.clock.advance(1000)
    const { mailer, mails } = keepingMailer()
    assert.deepEqual(await steps.mail(mailer), ['deferred'])
    assert.deepEqual(await readMails(reader), [])
    await sweepAfter(0)
    assert.deepEqual(
      (await steps.readWaiting(reader.id)).map(row => row.look_at),
      [morning],
    )
    h.clock.set(morning)
    await sweepAfter(0)
    assert.deepEqual(await steps.mail(mailer), ['delivered'])
    assert.equal(mails.length, 1)
  })

  /** Makes a mail whose first attempt fails, because of `mailer`, just before quiet hours. Retries it in them. */
  async function failBeforeQuietHours(mailer: Mailer, { urgent = false } = {}): Promise<Reader> {
    const reader = await makeUser(h)
    h.clock.set(new Date(Date.parse('2026-11-28T20:59:40.000Z') - (urgent ? 2 : 15) * MINUTE_MS))
    await makeWaiting(reader, 'game_cancelled', { urgent })
    await sweepAfter((urgent ? 2 : 15) * MINUTE_MS)
    assert.deepEqual(await steps.mail(mailer), ['failed'])
    h.clock.advance(30_000)
    assert.deepEqual(await steps.mail(mailer), ['deferred'])
    await sweepAfter(0)
    return reader
  }

  async function assertLeavesFrom(reader: Reader, from: Date) {
    h.clock.set(new Date(from.getTime() - 1000))
    await sweepAfter(0)
    assert.deepEqual(await readMails(reader), [])
    await sweepAfter(1000)
    const { mailer, mails } = keepingMailer()
    assert.deepEqual(await steps.mail(mailer), ['delivered'])
    assert.equal(mails.length, 1)
  }

  for (const urgent of [false, true]) {
    const kind = urgent ? 'an urgent' : 'an ordinary'
    test(`that begin after ${kind} mail could not reach the mail server hold it until their end`, async () => {
      const kept = keepingMailer()
      kept.failure = new MailFailure('ECONNECTION', false)
      const reader = await failBeforeQuietHours(kept.mailer, { urgent })
      await assertLeavesFrom(reader, morning)
    })
  }

  test('that begin after the mail server has refused the content for now hold the mail until their end', async t => {
    const server = await smtpServer('content')
    t.after(() => server.close())
    server.reply = [452, '4.3.1 ']
    const reader = await failBeforeQuietHours(createSmtpMailer(server.url, { from: 'a@example.com' }))
    assert.equal(server.mails.length, 1)
    await assertLeavesFrom(reader, morning)
  })

  test('that begin after the content was refused over a second connection hold the mail until their end', async t => {
    const server = await smtpServer()
    t.after(() => server.close())
    const proxy = await startProxy(new URL(server.url))
    t.after(() => proxy.close())
    const smtp = createSmtpMailer(proxy.url, { from: 'a@example.com' })
    let departures = 0
    const mailer: Mailer = {
      ...smtp,
      async send(mail, isCurrent) {
        // The mailer repeats a mail only if the broken connection had sent another mail before.
        await smtp.send(mail)
        server.mode = 'content'
        server.reply = [452, '4.3.1 ']
        await smtp.send(mail, async () => {
          departures += 1
          const isStillCurrent = await isCurrent!()
          if (departures > 1) return isStillCurrent
          await proxy.refuse()
          proxy.accept()
          // The mailer must notice that the connection is broken before it gets the content.
          await delay(100)
          await nextTurn()
          return isStillCurrent
        })
      },
    }
    const reader = await failBeforeQuietHours(mailer)
    assert.deepEqual([departures, server.mails.length], [2, 2])
    await assertLeavesFrom(reader, morning)
  })

  test('that begin after the database failed just before the content left hold the mail until their end', async () => {
    const reader = await makeUser(h)
    await makeWaiting(reader)
    await sweepAfter(15 * MINUTE_MS)
    let looks = 0
    const sql = new Proxy(h.database.sql, {
      apply(target, _, [strings, ...values]: [TemplateStringsArray, ...unknown[]]) {
        const isLook = strings.join('').includes('left join mail_state')
        if (isLook) looks += 1
        return isLook && looks === 2 ? Promise.reject(new Error('no database')) : target(strings, ...values)
      },
    })
    const kept = keepingMailer()
    // The mail server is so slow that the sender looks a second time.
    kept.meanwhile = async () => h.clock.advance(2000)
    const [row] = await steps.claimMails()
    const send = createSender({ ...h, database: { ...h.database, sql } }, kept.mailer)
    await assert.rejects(send(row!), /no database/)
    const [state] = await h.database.sql`select ordinary_at from mail_state where user_id = ${reader.id}`
    assert.deepEqual([looks, kept.mails, state], [2, [], { ordinary_at: row!.created_at }])
  })

  test('that begin after the mail may have left make the next mail wait for 24 hours from then', async t => {
    const server = await smtpServer('hold')
    t.after(() => server.close())
    const proxy = await startProxy(new URL(server.url))
    t.after(() => proxy.close())
    // The server has the content when the connection breaks.
    const cut = server.until(() => server.held.length > 0).then(proxy.refuse)
    const reader = await failBeforeQuietHours(createSmtpMailer(proxy.url, { from: 'a@example.com' }))
    await cut
    await assertLeavesFrom(reader, new Date('2026-11-29T20:59:40.000Z'))
  })
})

suite('a mail that waits for the end of quiet hours', () => {
  const settings = () => ({ defaults: h.ctx.config.preferenceDefaults, now: h.clock.now() })
  const turnOff: Record<string, (reader: Reader) => Promise<unknown>> = {
    'the settings': ({ id }) => update(h.database.sql, id, { types: { game_cancelled: { email: false } } }, settings()),
    'the link in a mail': ({ id }) => pauseEmail(h.database.sql, id, undefined, h.clock.now()),
  }
  for (const [place, change] of Object.entries(turnOff)) {
    test(`is dropped if its type is turned off by ${place}, even if the type is turned on again`, async () => {
      const reader = await makeUser(h)
      h.clock.set('2026-11-28T22:00:00.000Z')
      await makeWaiting(reader)
      await sweepAfter(15 * MINUTE_MS)
      await change(reader)
      await sweepAfter(1000)
      await update(h.database.sql, reader.id, { types: { game_cancelled: { email: true } } }, settings())
      await sweepAfter(12 * HOUR_MS)
      assert.deepEqual(await readMails(reader), [])
    })
  }
})

test('a notification is in at most one mail, and none is lost, while several workers look at the same time', async () => {
  const rounds = 200
  const readers = await Promise.all(Array.from({ length: 4 }, () => makeUser(h)))
  for (let round = 0; round < rounds; round += 1) {
    await h.database.sql`update mail_state set ordinary_at = null, urgent_at = null`
    const ids = (
      await Promise.all(readers.map(reader => makeWaiting(reader, 'game_cancelled', { urgent: round % 2 > 0 })))
    ).flat()
    h.clock.advance(15 * MINUTE_MS)
    await Promise.all(Array.from({ length: 4 }, () => steps.sweep()))
    while ((await steps.sweep()) > 0);
    const mails = await h.database.sql<{ payload: { notification_ids: number[] } }>`
      delete from outbox where channel = 'mail' returning payload`
    const mailed = mails.flatMap(({ payload }) => payload.notification_ids)
    assert.deepEqual(
      mailed.sort((one, other) => one - other),
      ids.sort((one, other) => one - other),
      `round ${round}`,
    )
    assert.equal(mails.length, readers.length, `round ${round}`)
    h.clock.set('2026-11-28T11:00:00.000Z')
  }
})

test('a notification that waits for the end of quiet hours never sleeps on after a change of them', async () => {
  const reader = await makeUser(h)
  h.clock.set('2026-11-28T22:00:00.000Z')
  for (let round = 0; round < 150; round += 1) {
    await h.database.sql`delete from waiting_mail`
    await h.database.sql`delete from outbox`
    await h.database.sql`update mail_state set ordinary_at = null`
    await makeWaiting(reader)
    const settings = { defaults: h.ctx.config.preferenceDefaults, now: h.clock.now() }
    await update(h.database.sql, reader.id, { quietHours: { enabled: true } }, settings)
    h.clock.advance(15 * MINUTE_MS)
    const now = h.clock.now()
    await Promise.all([
      steps.sweep(),
      update(h.database.sql, reader.id, { quietHours: { enabled: false } }, { ...settings, now }),
    ])
    await steps.sweep()
    assert.equal((await readMails(reader)).length, 1, `round ${round}`)
    h.clock.set('2026-11-28T22:00:00.000Z')
  }
})

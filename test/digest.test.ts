import assert from 'node:assert/strict'
import { beforeEach, suite, test } from 'node:test'
import { MailFailure } from '../src/mail/mailer.ts'
import { eraseUser } from '../src/personal-data.ts'
import { pauseEmail } from '../src/reach/preferences.ts'
import { harness } from './support/app.ts'
import { deliveries, keepingMailer, MINUTE_MS, PRODUCTION, PUBLIC_URL } from './support/digests.ts'
import { makeNotificationsSilently, makeUser } from './support/factories.ts'

const h = harness({
  ...PRODUCTION,
  APP_NAME: 'Padel & Cie',
  LINK_TEMPLATE: 'https://app.example.com/games/{game_id}?from=mail',
})
const steps = deliveries(h)

beforeEach(async () => {
  h.clock.set('2026-11-28T11:00:00.000Z')
  await h.database.sql`delete from outbox`
})

type Reader = { id: number; token: string; email: string }

/** Stores notifications and adds a mail about them to the outbox. @returns the ids of the notifications */
async function queueDigest({ id: userId }: Reader, more: Parameters<typeof makeNotificationsSilently>[3][]) {
  const ids: number[] = []
  for (const each of more) ids.push(...(await makeNotificationsSilently(h, userId, 1, each)))
  const now = h.clock.now()
  await h.database.sql`
    insert into mail_state (user_id, ordinary_at) values (${userId}, ${now})
    on conflict (user_id) do update set ordinary_at = ${now}`
  await h.database.sql`
    insert into outbox (channel, class, created_at, due, user_id, deadline, payload)
    values ('mail', 5, ${now}, ${now}, ${userId}, ${new Date(now.getTime() + 24 * 60 * MINUTE_MS)},
      ${JSON.stringify({ notification_ids: ids, urgent_ids: [], urgent: false })})`
  return ids
}

const cancelled = (number: number) => ({
  type: 'game_cancelled' as const,
  title: 'Partie annulée',
  message: `Léa a annulé la partie ${number}.`,
  data: { game_id: number },
})

async function readOrdinaryAt({ id }: Reader): Promise<Date | null> {
  const [row] = await h.database.sql<{
    ordinary_at: Date | null
  }>`select ordinary_at from mail_state where user_id = ${id}`
  return row!.ordinary_at
}

suite('a mail about unread notifications', () => {
  test('names the notification, links to it, and ends with the links that turn mails off', async () => {
    const reader = await makeUser(h, { firstName: 'Zoé' })
    await queueDigest(reader, [cancelled(42)])
    const { mailer, mails } = keepingMailer()
    assert.deepEqual(await steps.mail(mailer), ['delivered'])
    const [mail] = mails
    assert.equal(mail!.to, reader.email)
    assert.equal(mail!.subject, 'Partie annulée · Padel & Cie')
    const unsubscribe = `${PUBLIC_URL}/unsubscribe/${reader.id}.${h.ctx.keys.signLink(`unsubscribe:${reader.id}`)}`
    assert.equal(
      mail!.text,
      [
        'Bonjour Zoé,',
        'Voici ce que vous n’avez pas encore lu sur Padel & Cie\u00a0:',
        'Partie annulée\nLéa a annulé la partie 42.\nhttps://app.example.com/games/42?from=mail',
        `-- \nNe plus recevoir d’e-mail pour «\u00a0Votre partie est annulée\u00a0»\u00a0: ${unsubscribe}?type=game_cancelled\n` +
          `Ne plus recevoir d’e-mail sur les notifications de Padel & Cie\u00a0: ${unsubscribe}\n`,
      ].join('\n\n'),
    )
    for (const part of [
      'Bonjour Zoé,',
      'Padel &#38; Cie',
      '<a href="https://app.example.com/games/42?from=mail">Partie annulée</a>',
      'Léa a annulé la partie 42.',
      `<a href="${unsubscribe}?type=game_cancelled">`,
      `<a href="${unsubscribe}">`,
    ]) {
      assert.ok(mail!.html.includes(part), part)
    }
    assert.ok((await readOrdinaryAt(reader)) !== null)
  })

  test('is in the language of the reader', async () => {
    const reader = await makeUser(h, { firstName: 'Bob', locale: 'en' })
    await queueDigest(reader, [cancelled(1), { ...cancelled(2), type: 'game_reminder' }])
    const { mailer, mails } = keepingMailer()
    await steps.mail(mailer)
    assert.equal(mails[0]!.subject, '2 unread notifications · Padel & Cie')
    assert.match(mails[0]!.text, /^Hello Bob,\n\nHere is what you have not read yet on Padel & Cie:\n/)
    assert.match(mails[0]!.text, /Stop emails about “Your game is cancelled”: https/)
    assert.match(mails[0]!.text, /Stop all emails about notifications of Padel & Cie: https/)
    assert.match(mails[0]!.html, /<html lang="en">/)
  })

  test('lists the newest 20 notifications, newest first, and counts the others', async () => {
    const reader = await makeUser(h)
    await queueDigest(
      reader,
      Array.from({ length: 27 }, (_, index) => cancelled(100 + index)),
    )
    const { mailer, mails } = keepingMailer()
    await steps.mail(mailer)
    const listed = [...mails[0]!.text.matchAll(/games\/(\d+)/g)].map(([, id]) => Number(id))
    assert.deepEqual(
      listed,
      Array.from({ length: 20 }, (_, index) => 126 - index),
    )
    assert.match(mails[0]!.text, /\n\net 7 autres\n\n/)
    assert.match(mails[0]!.html, /<p>et 7 autres<\/p>/)
    assert.equal(mails[0]!.subject, '27 notifications non lues · Padel & Cie')
  })

  test('shows markup in a notification as text', async () => {
    const reader = await makeUser(h)
    await queueDigest(reader, [{ ...cancelled(1), message: '<img src=x onerror=alert(1)> & "co"' }])
    const { mailer, mails } = keepingMailer()
    await steps.mail(mailer)
    assert.ok(mails[0]!.text.includes('<img src=x onerror=alert(1)> & "co"'))
    assert.ok(!mails[0]!.html.includes('<img'))
    assert.ok(mails[0]!.html.includes('&#60;img src=x onerror=alert(1)&#62; &#38; &#34;co&#34;'))
  })

  test('shows only the first letter of an actor whose name is not all letters, so no name becomes a link', async () => {
    const reader = await makeUser(h, { locale: 'en' })
    const named = (name: string, length: number) => ({
      ...cancelled(1),
      message: `${name} has left.`,
      actorName: { start: 0 as const, length },
    })
    await queueDigest(reader, [
      named('evil.example call 0899', 22),
      named('Léa', 3),
      named('\u2068מרים\u2069', 6),
      named('\u20681.מרים\u2069', 8),
      named('123', 3),
      { ...cancelled(1), message: 'evil.example has no actor.' },
    ])
    const { mailer, mails } = keepingMailer()
    await steps.mail(mailer)
    for (const part of [mails[0]!.text, mails[0]!.html]) {
      assert.deepEqual(part.match(/[^\s>]+(?: player)? has [a-z ]+\./g), [
        'evil.example has no actor.',
        'A player has left.',
        '\u2068מ\u2069 has left.',
        '\u2068מרים\u2069 has left.',
        'Léa has left.',
        'e has left.',
      ])
    }
  })

  test('has the headers that mail programs need for an unsubscribe button', async () => {
    const reader = await makeUser(h)
    await queueDigest(reader, [cancelled(1)])
    const { mailer, mails } = keepingMailer()
    await steps.mail(mailer)
    const headers = mails[0]!.headers!
    const token = `${reader.id}.${h.ctx.keys.signLink(`unsubscribe:${reader.id}`)}`
    assert.equal(headers['List-Unsubscribe'], `<${PUBLIC_URL}/unsubscribe/${token}>`)
    assert.equal(headers['List-Unsubscribe-Post'], 'List-Unsubscribe=One-Click')
    assert.equal(headers['List-Id'], '<notifications.example.com>')
    assert.equal(headers['Feedback-ID'], 'ordinary:digest:notifications:courtside')
    assert.match(headers['Message-ID']!, /^<digest\.\d+\.[a-z0-9]+@example\.com>$/)
  })
})

suite('when the mail is sent', () => {
  test('it leaves out what was read or deleted since', async () => {
    const reader = await makeUser(h)
    const [read, removed, left] = await queueDigest(reader, [cancelled(1), cancelled(2), cancelled(3)])
    await h.call('POST', `/api/v1/notifications/${read}/read`, { token: reader.token })
    await h.call('DELETE', `/api/v1/notifications/${removed}`, { token: reader.token })
    const { mailer, mails } = keepingMailer()
    assert.deepEqual(await steps.mail(mailer), ['delivered'])
    assert.match(mails[0]!.text, /la partie 3\./)
    assert.doesNotMatch(mails[0]!.text, /la partie [12]\./)
    assert.ok(left)
  })

  const reasons: Record<string, (reader: Reader) => Promise<unknown>> = {
    read: ({ token }) => h.call('POST', '/api/v1/notifications/read-all', { token }),
    off: ({ id }) => pauseEmail(h.database.sql, id, undefined, h.clock.now()),
    bounced: ({ id }) => h.database.sql`update mail_state set bounced_at = ${h.clock.now()} where user_id = ${id}`,
    stale: ({ id }) =>
      h.database
        .sql`update notification set type = 'game_reminder', data = '{"starts_at": "2026-11-28T10:59:00Z"}' where user_id = ${id}`,
  }
  for (const [outcome, change] of Object.entries(reasons)) {
    test(`it is dropped as "${outcome}" if nothing is left, and then it does not count in the limits`, async () => {
      const reader = await makeUser(h)
      await queueDigest(reader, [cancelled(1)])
      await change(reader)
      const { mailer, mails } = keepingMailer()
      assert.deepEqual(await steps.mail(mailer), [outcome])
      assert.deepEqual(mails, [])
      assert.deepEqual(await steps.readMails(reader.id), [])
      assert.equal(await readOrdinaryAt(reader), null)
    })
  }

  test('it leaves out what is read while the mail server is slow', async () => {
    const reader = await makeUser(h)
    const [read] = await queueDigest(reader, [cancelled(1), cancelled(2)])
    const kept = keepingMailer()
    kept.meanwhile = async () => {
      h.clock.advance(1_001)
      await h.call('POST', `/api/v1/notifications/${read}/read`, { token: reader.token })
    }
    assert.deepEqual(await steps.mail(kept.mailer), ['delivered'])
    assert.equal(kept.mails.length, 1)
    assert.match(kept.mails[0]!.text, /la partie 2\./)
    assert.doesNotMatch(kept.mails[0]!.text, /la partie 1\./)
  })

  test('it is dropped if mails are switched off while the mail server is slow', async () => {
    const reader = await makeUser(h)
    await queueDigest(reader, [cancelled(1)])
    const kept = keepingMailer()
    kept.meanwhile = async () => {
      h.clock.advance(1_001)
      await pauseEmail(h.database.sql, reader.id, undefined, h.clock.now())
    }
    assert.deepEqual(await steps.mail(kept.mailer), ['off'])
    assert.deepEqual(kept.mails, [])
    assert.deepEqual(await h.database.sql`select id from digest_attempt where user_id = ${reader.id}`, [])
  })

  test('it is tried again later if something changes each time before the content leaves', async () => {
    const reader = await makeUser(h)
    const ids = await queueDigest(reader, [1, 2, 3, 4, 5, 6].map(cancelled))
    const kept = keepingMailer()
    kept.meanwhile = async () => {
      h.clock.advance(1_001)
      await h.call('POST', `/api/v1/notifications/${ids.shift()}/read`, { token: reader.token })
    }
    assert.deepEqual(await steps.mail(kept.mailer), ['failed'])
    assert.deepEqual(kept.mails, [])
    kept.meanwhile = async () => {}
    h.clock.advance(30_000)
    assert.deepEqual(await steps.mail(kept.mailer), ['delivered'])
  })

  test('it is dropped with the account', async () => {
    const reader = await makeUser(h)
    await queueDigest(reader, [cancelled(1)])
    assert.equal(await eraseUser(h.database.sql, reader.id), true)
    assert.deepEqual(await h.database.sql`select id from outbox where user_id = ${reader.id}`, [])
  })

  test('it is tried again with the same Message-ID after a failure, with growing waits', async () => {
    const reader = await makeUser(h)
    await queueDigest(reader, [cancelled(1)])
    const kept = keepingMailer()
    kept.failure = new MailFailure('ECONNECTION CONN', false)
    const waits: number[] = []
    for (let attempt = 1; attempt <= 8; attempt += 1) {
      assert.deepEqual(await steps.mail(kept.mailer), ['failed'])
      const [row] = await h.database.sql<{ due: Date }>`select due from outbox where user_id = ${reader.id}`
      waits.push((row!.due.getTime() - h.clock.now().getTime()) / 1000)
      h.clock.set(row!.due)
    }
    assert.deepEqual(waits, [30, 60, 120, 240, 480, 900, 900, 900])
    kept.failure = undefined
    assert.deepEqual(await steps.mail(kept.mailer), ['delivered'])
    assert.equal(kept.mails.length, 1)
  })

  test('it is not tried again if the mail server refuses it for good', async () => {
    const reader = await makeUser(h)
    await queueDigest(reader, [cancelled(1)])
    const kept = keepingMailer()
    kept.failure = new MailFailure('EENVELOPE DATA 550 5.6.0', true)
    assert.deepEqual(await steps.mail(kept.mailer), ['refused'])
    assert.deepEqual(await steps.readMails(reader.id), [])
  })

  test('no line of the log contains the address or a text of the mail', async () => {
    const reader = await makeUser(h)
    await queueDigest(reader, [cancelled(77_777)])
    const kept = keepingMailer()
    kept.failure = new MailFailure('EENVELOPE RCPT TO 450', false)
    const before = h.logged.length
    await steps.mail(kept.mailer)
    const lines = h.logged.slice(before).map(line => JSON.stringify(line))
    assert.ok(lines.some(line => line.includes('did not mail')))
    for (const line of lines) assert.doesNotMatch(line, /@example|77777|annulé/)
  })
})

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { INTAKE_KEY, settingsFor } from './support/app.ts'
import { testDatabase } from './support/database.ts'
import { insertUser } from './support/factories.ts'
import { BATCH, cloudEvent, newGameId } from './support/games.ts'
import { type Service, startService } from './support/service.ts'
import { smtpServer } from './support/smtp.ts'
import { waitUntil } from './support/wait-until.ts'

const PUBLIC_URL = 'https://club.example/courtside'

/** Returns the value of a header as the mail server received it. */
function readHeader(mail: { parsed: { headerLines: readonly { key: string; line: string }[] } }, name: string): string {
  const { line } = mail.parsed.headerLines.find(({ key }) => key === name)!
  return line.replace(/^[^:]+:\s*/, '').replaceAll('\r\n', '')
}

/** Starts the service with a mail server, and creates Anna and Zoé, whose quiet hours are off. */
async function setUp(t: TestContext) {
  const database = await testDatabase()
  const smtp = await smtpServer()
  const services: Service[] = []
  t.after(async () => {
    smtp.release()
    for (const service of services) await service.stop()
    await smtp.close()
    await database.drop()
  })
  async function start() {
    const service = await startService({
      ...settingsFor(database.url, smtp.url),
      MAIL_FROM: 'Padel Club <hello@club.example>',
      PUBLIC_URL,
      EMAIL_AFTER: '1s',
      EMAIL_AFTER_URGENT: '1s',
    })
    services.push(service)
    return service
  }
  const { sql } = database
  const service = await start()
  const person = { lastName: 'Martin', locale: 'fr', now: new Date() } as const
  const anna = await insertUser(sql, { ...person, email: 'anna@example.com', firstName: 'Anna' })
  const zoe = await insertUser(sql, { ...person, email: 'zoe@example.com', firstName: 'Zoé' })
  // The test may run at night.
  await sql`
    insert into notification_preference (user_id, quiet_enabled, updated_at) values (${zoe}, false, now())`
  /** Reports that Anna cancels a game with Zoé. */
  async function cancelGame() {
    const starts_at = new Date(Date.now() + 3 * 3_600_000).toISOString()
    const data = { game_id: newGameId(), creator_id: anna, player_ids: [anna, zoe], actor_id: anna, starts_at }
    const answer = await fetch(`${service.address}/internal/v1/events`, {
      method: 'POST',
      headers: { authorization: `Bearer ${INTAKE_KEY}`, 'content-type': BATCH },
      body: JSON.stringify([cloudEvent('game_cancelled', data, { time: new Date().toISOString() })]),
    })
    assert.equal(answer.status, 200)
  }
  return { sql, smtp, service, start, cancelGame }
}

test('a cancellation that stays unread arrives as one mail, and the unsubscribe link in its header stops further mails', async t => {
  const { sql, smtp, service, cancelGame } = await setUp(t)
  await cancelGame()
  await smtp.until(() => smtp.mails.length > 0)
  const [mail] = smtp.mails
  assert.deepEqual([mail!.from, mail!.to], ['hello@club.example', ['zoe@example.com']])
  assert.equal(mail!.parsed.subject, 'Partie annulée · Courtside')
  assert.match(mail!.parsed.text!, /Anna a annulé la partie du /)
  assert.equal(readHeader(mail!, 'auto-submitted'), 'auto-generated')
  assert.equal(readHeader(mail!, 'list-unsubscribe-post'), 'List-Unsubscribe=One-Click')
  assert.equal(readHeader(mail!, 'list-id'), '<notifications.club.example>')
  assert.match(readHeader(mail!, 'message-id'), /^<digest\.[^@]+@club\.example>$/)
  const [, path] = /^<https:\/\/club\.example(\/courtside\/unsubscribe\/[^>]+)>$/.exec(
    readHeader(mail!, 'list-unsubscribe'),
  )!
  const unsubscribed = await fetch(service.address + path, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: 'List-Unsubscribe=One-Click',
  })
  assert.equal(unsubscribed.status, 200)
  await cancelGame()
  await waitUntil(async () => (await sql`select id from outbox`).length === 0)
  assert.deepEqual(await sql`select user_id from waiting_mail`, [])
  assert.equal(smtp.mails.length, 1)
  const log = service.lines.join('\n')
  assert.ok(!log.includes(path!.split('/').at(-1)!))
  assert.doesNotMatch(log, /zoe@|anna@/)
})

test('if a worker is killed while it sends a mail, another worker sends the mail again, with the same Message-ID', async t => {
  const { sql, smtp, service, start, cancelGame } = await setUp(t)
  smtp.mode = 'hold'
  await cancelGame()
  await smtp.until(() => smtp.held.length === 1)
  await service.stop('SIGKILL')
  // The mail server takes the mail although the worker is dead.
  smtp.release()
  await smtp.until(() => smtp.mails.length === 1)
  smtp.mode = 'accept'
  await start()
  await smtp.until(() => smtp.mails.length === 2)
  await waitUntil(async () => (await sql`select id from outbox`).length === 0)
  assert.equal(smtp.mails.length, 2)
  const [first, second] = smtp.mails.map(mail => readHeader(mail, 'message-id'))
  assert.equal(second, first)
})

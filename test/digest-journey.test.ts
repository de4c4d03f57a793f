import assert from 'node:assert/strict'
import { test } from 'node:test'
import { INTAKE_KEY, settingsFor } from './support/app.ts'
import { testDatabase } from './support/database.ts'
import { insertUser } from './support/factories.ts'
import { BATCH, cloudEvent, newGameId } from './support/games.ts'
import { startService } from './support/service.ts'
import { smtpServer } from './support/smtp.ts'
import { waitUntil } from './support/wait-until.ts'

const PUBLIC_URL = 'https://club.example/courtside'

/** Returns the value of a header as the mail server received it. */
function readHeader(mail: { parsed: { headerLines: readonly { key: string; line: string }[] } }, name: string): string {
  const { line } = mail.parsed.headerLines.find(({ key }) => key === name)!
  return line.replace(/^[^:]+:\s*/, '').replaceAll('\r\n', '')
}

test('a cancellation that stays unread arrives as one mail, and the unsubscribe link in its header stops further mails', async t => {
  const database = await testDatabase()
  const smtp = await smtpServer()
  const service = await startService({
    ...settingsFor(database.url, smtp.url),
    MAIL_FROM: 'Padel Club <hello@club.example>',
    PUBLIC_URL,
    EMAIL_AFTER: '1s',
    EMAIL_AFTER_URGENT: '1s',
  })
  t.after(async () => {
    await service.stop()
    await smtp.close()
    await database.drop()
  })
  const person = { lastName: 'Martin', locale: 'fr', now: new Date() } as const
  const { sql } = database
  const anna = await insertUser(sql, { ...person, email: 'anna@example.com', firstName: 'Anna' })
  const zoe = await insertUser(sql, { ...person, email: 'zoe@example.com', firstName: 'Zoé' })
  // The test may run at night.
  await sql`
    insert into notification_preference (user_id, quiet_enabled, updated_at) values (${zoe}, false, now())`
  const cancelGame = async () => {
    const starts_at = new Date(Date.now() + 3 * 3_600_000).toISOString()
    const data = { game_id: newGameId(), creator_id: anna, player_ids: [anna, zoe], actor_id: anna, starts_at }
    const time = new Date().toISOString()
    const answer = await fetch(`${service.address}/internal/v1/events`, {
      method: 'POST',
      headers: { authorization: `Bearer ${INTAKE_KEY}`, 'content-type': BATCH },
      body: JSON.stringify([cloudEvent('game_cancelled', data, { time })]),
    })
    assert.equal(answer.status, 200)
  }
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

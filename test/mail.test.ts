import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { pino } from 'pino'
import { composeCodeEmail } from '../src/auth/code-email.ts'
import { sendCode } from '../src/auth/send-code.ts'
import { deriveKeys } from '../src/keys.ts'
import { findSenderDomain, type Mail, type MailFailure } from '../src/mail/mailer.ts'
import { createSmtpMailer } from '../src/mail/smtp.ts'
import { FROM, KEYS, NOW, outbox, TEXTS } from './support/outbox.ts'
import { type Received, smtpServer } from './support/smtp.ts'
import { waitUntil } from './support/wait-until.ts'

const secondsLater = (seconds: number) => new Date(NOW.getTime() + seconds * 1_000)

/** Returns the code of a mail. The code is the only line of four digits in the text part. */
function readCode({ parsed }: Received): string {
  const codes = parsed.text!.split('\n').filter(line => /^\d{4}$/.test(line))
  assert.equal(codes.length, 1)
  return codes[0]!
}

suite('a code is mailed', { concurrency: true }, () => {
  test('a French code mail has the expected text, HTML, subject, sender and headers', async t => {
    const box = await outbox(t)
    await box.ask('zoe@example.com')
    await box.work()
    await box.smtp.until(() => box.smtp.mails.length === 1)

    const [mail] = box.smtp.mails
    const code = readCode(mail!)
    const [row] = await box.sql<{ id: string; mac: Buffer }>`select id, mac from sign_in_code`
    assert.ok(KEYS.matches(row!.mac, row!.id, code))
    assert.deepEqual([mail!.from, mail!.to], ['no-reply@example.com', ['zoe@example.com']])
    assert.equal(mail!.parsed.from!.text, '"Courtside" <no-reply@example.com>')
    assert.equal(mail!.parsed.subject, `Votre code Courtside\u00a0: ${code}`)
    assert.equal(mail!.parsed.headers.get('auto-submitted'), 'auto-generated')
    assert.match(mail!.parsed.text!, /Demandé à 11\u00a0h\u00a000, il est valable jusqu’à 11\u00a0h\u00a015/)
    assert.match(mail!.parsed.text!, /Ignorez cet e-mail/)
    assert.match(mail!.parsed.html as string, new RegExp(`<html lang="fr">[^]*>${code}</p>[^]*Ignorez cet e-mail`))
    assert.doesNotMatch(mail!.parsed.html as string, /<(img|script|link)|https?:/)
  })

  test('if a request for a code names no language, the mail is in the language of the account', async t => {
    const box = await outbox(t)
    await box.register('sam@example.com', 'Sam', 'en')
    await box.register('lea@example.com', 'Léa')
    for (const email of ['sam@example.com', 'lea@example.com']) await box.ask(email, { profile: null })
    await box.work()
    await box.smtp.until(() => box.smtp.mails.length === 2)
    const readSubject = (email: string) => box.smtp.mails.find(mail => mail.to.includes(email))!.parsed.subject!
    assert.match(readSubject('sam@example.com'), /^Your Courtside code/)
    assert.match(readSubject('lea@example.com'), /^Votre code Courtside/)
  })

  test('if a code is requested in English, its mail is in English', async t => {
    const box = await outbox(t)
    await box.register('sam@example.com', 'Sam')
    await box.ask('sam@example.com', { profile: null, language: 'en' })
    await box.work()
    await box.smtp.until(() => box.smtp.mails.length === 1)
    const [mail] = box.smtp.mails
    assert.equal(mail!.parsed.subject, `Your Courtside code: ${readCode(mail!)}`)
    assert.match(mail!.parsed.text!, /^Hello Sam,\n/)
    assert.match(mail!.parsed.text!, /Requested at 11:00, it is valid until 11:15/)
    assert.match(mail!.parsed.text!, /Ignore this email/)
  })

  test('a mail to a user with a malicious name contains only the first letter of the name, and no header, markup or line break', async t => {
    const box = await outbox(t)
    await box.register('eve@example.com', '<script>x</script>\r\nBcc: eve@evil.example\u2028"&\'')
    await box.ask('eve@example.com', { profile: null })
    await box.work()
    await box.smtp.until(() => box.smtp.mails.length === 1)
    const [mail] = box.smtp.mails
    assert.deepEqual(mail!.to, ['eve@example.com'])
    assert.doesNotMatch(JSON.stringify(mail!.parsed.headerLines), /script|evil/)
    assert.equal(mail!.parsed.text!.split('\n')[0], 'Bonjour s,')
    assert.doesNotMatch(mail!.parsed.html as string, /script|evil/)
  })

  test('the mail for a sign-up names the profile and the terms, and its greeting has no name', async t => {
    const box = await outbox(t)
    await box.ask('zoe@example.com')
    box.work({ texts: { ...TEXTS, termsUrl: 'https://club.example/terms?a=1&b=2' } })
    await box.smtp.until(() => box.smtp.mails.length === 1)
    const { text, html } = box.smtp.mails[0]!.parsed
    assert.match(text!, /^Bonjour,\n/)
    assert.match(
      text!,
      /vous créez un compte au nom de Zoé Martin et vous acceptez les conditions d’utilisation\u00a0: https:\/\/club\.example\/terms\?a=1&b=2\n/,
    )
    assert.match(html as string, /<a href="https:\/\/club\.example\/terms\?a=1&#38;b=2">/)
  })

  test('the mail with a code shows the name of the app in its subject and its texts', async t => {
    const box = await outbox(t)
    await box.ask('zoe@example.com')
    await box.ask('sam@example.com', { language: 'en' })
    box.work({ texts: { ...TEXTS, appName: 'Padel & Co <b>' } })
    await box.smtp.until(() => box.smtp.mails.length === 2)
    const [french, english] = ['zoe@example.com', 'sam@example.com'].map(
      to => box.smtp.mails.find(mail => mail.to[0] === to)!.parsed,
    )
    assert.match(french!.subject!, /^Votre code Padel & Co <b>\u00a0: \d{4}$/)
    assert.match(french!.text!, /^Voici votre code Padel & Co <b>\u00a0:$/m)
    assert.match(french!.html as string, /<p>Voici votre code Padel &#38; Co &#60;b&#62;\u00a0:<\/p>/)
    assert.match(english!.subject!, /^Your Padel & Co <b> code: \d{4}$/)
    assert.match(english!.text!, /^Here is your Padel & Co <b> code:$/m)
  })

  test('in the mail for a sign-up, a name with an address becomes its first letter', async t => {
    const box = await outbox(t)
    const firstName = 'Votre compte va fermer : https://evil.example'
    await box.ask('zoe@example.com', { profile: { firstName, lastName: '1', termsVersion: '1' } })
    await box.work()
    await box.smtp.until(() => box.smtp.mails.length === 1)
    const { text, html } = box.smtp.mails[0]!.parsed
    assert.match(text!, /vous créez un compte au nom de V et vous acceptez/)
    assert.doesNotMatch(`${text} ${html}`, /evil|fermer/)
  })
})

test('the mail for a code of several parts shows the parts in order, in its subject and its texts', () => {
  const row = { purpose: 'sign_in', sent_at: NOW, expires_at: NOW, first_name: 'Zoé', last_name: 'Martin' } as const
  const french = composeCodeEmail(row, '4921 0377', 'fr', TEXTS)
  assert.equal(french.subject, 'Votre code Courtside\u00a0: 4921, puis 0377')
  assert.match(french.text, /plusieurs parties[\s\S]*\n\n4921, puis 0377\n\n/)
  assert.match(french.html, />4921, puis 0377<\/p>/)
  const english = composeCodeEmail(row, '4921 0377 8800', 'en', TEXTS)
  assert.match(english.text, /several parts[\s\S]*\n\n4921, then 0377, then 8800\n\n/)
})

suite('a queued mail is dropped', { concurrency: true }, () => {
  test('if two codes for one address are queued, only the newer code is mailed', async t => {
    const box = await outbox(t)
    await box.ask('zoe@example.com')
    await box.ask('zoe@example.com', { now: secondsLater(60) })
    const worker = await box.work({ now: secondsLater(60) })
    await waitUntil(async () => (await box.rows()).length === 0)
    await worker.stop()
    assert.equal(box.smtp.mails.length, 1)
    const [row] = await box.sql<{ id: string; mac: Buffer }>`select id, mac from sign_in_code`
    assert.ok(KEYS.matches(row!.mac, row!.id, readCode(box.smtp.mails[0]!)))
    assert.deepEqual(await box.rows(), [])
  })

  test('no mail is sent for a used code, an expired code, a decoy or a row with a broken payload', async t => {
    const box = await outbox(t)
    await box.ask('used@example.com', { now: secondsLater(1) })
    await box.sql`delete from sign_in_code where email = 'used@example.com'`
    await box.ask('nobody@example.com', { profile: null, now: secondsLater(1) })
    await box.ask('expired@example.com')
    await box.add([{ payload: { sealed: 1 } }])
    await box.ask('last@example.com', { now: secondsLater(1) })
    const worker = await box.work({ now: secondsLater(900) })
    await waitUntil(async () => (await box.rows()).length === 0)
    await worker.stop()
    assert.deepEqual(
      box.smtp.mails.map(mail => mail.to),
      [['last@example.com']],
    )
    assert.deepEqual(await box.rows(), [])
  })

  test('if the mail server refuses a recipient permanently, the mail is dropped and the address is not logged', async t => {
    const box = await outbox(t, 'reject')
    await box.ask('zoe@example.com')
    const worker = await box.work()
    await box.smtp.until(() => box.smtp.seen.recipients === 1)
    await worker.stop()
    assert.deepEqual(await box.rows(), [])
    assert.deepEqual(
      box.logged.filter(line => Number(line.level) >= 40).map(line => line.reason),
      ['EENVELOPE RCPT TO 550'],
    )
    assert.doesNotMatch(JSON.stringify(box.logged), /zoe|example\.com/)
  })
})

test('a mail that the server defers is sent later, and neither its row nor the log contains the code or address', async t => {
  const box = await outbox(t, 'refuse')
  await box.ask('zoe@example.com')
  const worker = box.work()
  await box.smtp.until(() => box.smtp.seen.connections === 1)
  box.smtp.mode = 'defer'
  await box.untilDeferred(1)
  const nextDue = async () => box.sql`update outbox set due = ${NOW} where not ready`
  await nextDue()
  await box.untilDeferred(2)
  await worker.stop()

  const [row] = await box.rows()
  assert.deepEqual(Object.keys(row!.payload).sort(), ['language', 'sealed'])
  assert.deepEqual(
    box.logged.filter(line => Number(line.level) >= 40).map(line => line.reason),
    ['MailFailure EPROTOCOL CONN 421', 'MailFailure EENVELOPE RCPT TO 451'],
  )

  box.smtp.mode = 'accept'
  await nextDue()
  const next = box.work()
  await box.smtp.until(() => box.smtp.mails.length === 1)
  await next.stop()
  assert.deepEqual(await box.rows(), [])
  const code = readCode(box.smtp.mails[0]!)
  assert.doesNotMatch(JSON.stringify(row), new RegExp(`zoe|example\\.com|"${code}"`))
  const logLines = box.logged.map(({ time, ...line }) => line)
  assert.doesNotMatch(JSON.stringify(logLines), new RegExp(`zoe|example\\.com|${row!.payload.sealed}|\\b${code}\\b`))
  assert.deepEqual(
    box.attempts.map(({ outcome }) => outcome),
    ['failed', 'failed', 'delivered'],
  )
})

test('only a reply that is about the recipient or the content refuses a mail permanently', async t => {
  const server = await smtpServer('reply')
  t.after(() => server.close())
  const mailer = createSmtpMailer(server.url, { from: FROM })
  const mail = { to: 'zoe@example.com', subject: 's', text: 't', html: 'h' }
  const judge = async (reply: [number, string]) => {
    server.reply = reply
    const failure = (await mailer.send(mail).catch(error => error)) as MailFailure
    return [failure.permanent, failure.isAboutMail]
  }
  const permanent: [number, string][] = [
    [550, ''],
    [553, ''],
    [550, '5.1.1 '],
    [550, '5.1.10 '],
    [552, '5.2.2 '],
  ]
  const aboutUs: [number, string][] = [
    [554, ''],
    [504, '5.5.2 '],
    [550, '5.1.8 '],
    [550, '5.7.1 '],
    [421, ''],
    [452, '4.3.1 '],
  ]
  const deferred: [number, string][] = [
    [450, ''],
    [451, '4.2.1 '],
    [450, '4.1.2 '],
  ]
  for (const reply of permanent) assert.deepEqual(await judge(reply), [true, true], reply.join())
  server.mode = 'content'
  for (const reply of [[554, '5.6.0 '], ...permanent] as typeof permanent) {
    assert.deepEqual(await judge(reply), [true, true], reply.join())
  }
  server.mode = 'reply'
  for (const reply of aboutUs) assert.deepEqual(await judge(reply), [false, false], reply.join())
  for (const reply of deferred) assert.deepEqual(await judge(reply), [false, true], reply.join())
})

test('if the mail server blocks the sender with 554 5.7.1, the mail is tried again, and dropped when its code expires', async t => {
  const box = await outbox(t, 'block')
  await box.ask('zoe@example.com')
  const worker = box.work()
  await box.untilDeferred(1)
  await worker.stop()
  await box.sql`update outbox set due = ${NOW}`
  const late = box.work({ now: secondsLater(900) })
  await waitUntil(async () => (await box.rows()).length === 0)
  await late.stop()
  assert.equal(box.smtp.seen.recipients, 1)
  assert.deepEqual(
    box.attempts.map(({ outcome }) => outcome),
    ['failed', 'dropped'],
  )
})

test('a process that cannot decrypt a code leaves the mail to another process', async t => {
  const box = await outbox(t)
  await box.ask('zoe@example.com')
  const other = box.work({ keys: deriveKeys(['x9Lq2vTn7RkPp3aWvYxq1LmN7oBc5dEf']) })
  await box.untilDeferred(1)
  assert.deepEqual([box.attempts[0]!.outcome, box.smtp.mails.length], ['sealed', 0])
  await other.stop()
  await box.sql`update outbox set due = ${NOW}`
  box.work()
  await box.smtp.until(() => box.smtp.mails.length === 1)
})

test('a decoy is composed but opens no connection to the mail server', async t => {
  const box = await outbox(t)
  await box.ask('nobody@example.com', { profile: null })
  const composed: Mail[] = []
  const mailer = {
    send: async () => assert.fail('a decoy was sent'),
    compose: async (mail: Mail) => void composed.push(mail),
  }
  const { sql, logged } = box
  assert.equal(logged.length, 0)
  box.start(sendCode({ sql, mailer, keys: KEYS, now: () => NOW, log: pino({ level: 'silent' }), texts: TEXTS }))
  await waitUntil(async () => (await box.rows()).length === 0)
  assert.deepEqual(
    composed.map(({ to, subject }) => [to, subject.replace(/\d{4}/, '0000')]),
    [['nobody@example.com', 'Votre code Courtside\u00a0: 0000']],
  )
})

test('the domain of a sender is in ASCII, so headers may contain it', () => {
  assert.equal(findSenderDomain('Club <no-reply@clüb.example>'), 'xn--clb-ioa.example')
  assert.equal(findSenderDomain('no-reply@club.example'), 'club.example')
  assert.equal(findSenderDomain('no-reply@[127.0.0.1]'), 'localhost')
})

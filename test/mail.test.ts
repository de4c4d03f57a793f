import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { KEYS, NOW, outbox } from './support/outbox.ts'
import type { Received } from './support/smtp.ts'

const later = (seconds: number) => new Date(NOW.getTime() + seconds * 1_000)

/** The code of a mail: it stands "on a line of its own in the text part". */
function codeIn({ parsed }: Received): string {
  const codes = parsed.text!.split('\n').filter(line => /^\d{4}$/.test(line))
  assert.equal(codes.length, 1)
  return codes[0]!
}

suite('a code is mailed', { concurrency: true }, () => {
  test('in French: text, HTML, subject, sender, headers', async t => {
    const box = await outbox(t)
    await box.ask('zoe@example.com')
    await box.work()
    await box.smtp.until(() => box.smtp.mails.length === 1)

    const [mail] = box.smtp.mails
    const code = codeIn(mail!)
    const [row] = await box.sql<{ id: string; mac: Buffer }>`select id, mac from sign_in_code`
    assert.ok(KEYS.matches(row!.mac, row!.id, code))
    assert.deepEqual([mail!.from, mail!.to], ['no-reply@example.com', ['zoe@example.com']])
    assert.equal(mail!.parsed.from!.text, '"Courtside" <no-reply@example.com>')
    assert.equal(mail!.parsed.subject, `Votre code Courtside\u00a0: ${code}`)
    assert.equal(mail!.parsed.headers.get('auto-submitted'), 'auto-generated')
    assert.match(mail!.parsed.text!, /15\u00a0minutes à compter de votre demande/)
    assert.match(mail!.parsed.text!, /Ignorez cet e-mail/)
    assert.match(mail!.parsed.html as string, new RegExp(`<html lang="fr">[^]*>${code}</p>[^]*Ignorez cet e-mail`))
    assert.doesNotMatch(mail!.parsed.html as string, /<(img|script|link)|https?:/)
  })

  test('in English', async t => {
    const box = await outbox(t)
    await box.register('sam@example.com', 'Sam')
    await box.ask('sam@example.com', { profile: null, language: 'en' })
    await box.work()
    await box.smtp.until(() => box.smtp.mails.length === 1)
    const [mail] = box.smtp.mails
    assert.equal(mail!.parsed.subject, `Your Courtside code: ${codeIn(mail!)}`)
    assert.match(mail!.parsed.text!, /^Hello Sam,\n/)
    assert.match(mail!.parsed.text!, /15\u00a0minutes from your request/)
    assert.match(mail!.parsed.text!, /Ignore this email/)
  })

  test('a name reaches no header and becomes neither markup nor a line', async t => {
    const box = await outbox(t)
    await box.register('eve@example.com', '<script>x</script>\r\nBcc: eve@evil.example\u2028"&\'')
    await box.ask('eve@example.com', { profile: null })
    await box.work()
    await box.smtp.until(() => box.smtp.mails.length === 1)
    const [mail] = box.smtp.mails
    assert.deepEqual(mail!.to, ['eve@example.com'])
    assert.doesNotMatch(JSON.stringify(mail!.parsed.headerLines), /script|evil/)
    assert.equal(mail!.parsed.text!.split('\n')[0], 'Bonjour <script>x</script> Bcc: eve@evil.example "&\',')
    assert.ok((mail!.parsed.html as string).includes('&#60;script&#62;x&#60;/script&#62; Bcc'))
    assert.ok(!(mail!.parsed.html as string).includes('<script'))
  })

  test('the name of a sign-up, an unverified text, is not mailed', async t => {
    const box = await outbox(t)
    await box.ask('zoe@example.com')
    await box.work()
    await box.smtp.until(() => box.smtp.mails.length === 1)
    const { text, html, headerLines } = box.smtp.mails[0]!.parsed
    assert.match(text!, /^Bonjour,\n/)
    assert.doesNotMatch(`${text} ${html} ${JSON.stringify(headerLines)}`, /Zo[eé][^@]|Martin/)
  })
})

suite('a code is dropped', { concurrency: true }, () => {
  test('once superseded; the newer one is mailed', async t => {
    const box = await outbox(t)
    await box.ask('zoe@example.com')
    await box.ask('zoe@example.com', { now: later(60) })
    const worker = await box.work({}, later(60))
    await box.smtp.until(() => box.smtp.mails.length === 1)
    await worker.stop()
    assert.equal(box.smtp.mails.length, 1)
    const [row] = await box.sql<{ id: string; mac: Buffer }>`select id, mac from sign_in_code`
    assert.ok(KEYS.matches(row!.mac, row!.id, codeIn(box.smtp.mails[0]!)))
    assert.deepEqual(await box.jobs(), [])
  })

  test('once used, once expired, when a decoy, when a payload is none', async t => {
    const box = await outbox(t)
    await box.ask('used@example.com', { now: later(1) })
    await box.sql`delete from sign_in_code where email = 'used@example.com'`
    await box.ask('nobody@example.com', { profile: null, now: later(1) })
    await box.ask('expired@example.com')
    await box.sql`select graphile_worker.add_job('send_code', '{"code_id": "x"}')`
    await box.ask('last@example.com', { now: later(1) })
    const worker = await box.work({}, later(900))
    await box.smtp.until(() => box.smtp.mails.length === 1)
    await worker.stop()
    assert.deepEqual(
      box.smtp.mails.map(mail => mail.to),
      [['last@example.com']],
    )
    assert.deepEqual(await box.jobs(), [])
  })

  test('when the recipient is refused for good, without the address in the log', async t => {
    const box = await outbox(t, 'reject')
    await box.ask('zoe@example.com')
    const worker = await box.work()
    await box.smtp.until(() => box.smtp.seen.recipients === 1)
    await worker.stop()
    assert.deepEqual(await box.jobs(), [])
    assert.deepEqual(
      box.logged.filter(line => Number(line.level) >= 40).map(line => line.reason),
      ['EENVELOPE RCPT TO 550'],
    )
    assert.doesNotMatch(JSON.stringify(box.logged), /zoe|example\.com/)
  })
})

test('a server that is down, then defers, then works: the code goes out, and neither it nor the address is kept', async t => {
  const box = await outbox(t, 'refuse')
  await box.ask('zoe@example.com')
  const worker = await box.work()
  await box.smtp.until(() => box.smtp.seen.connections === 1)
  box.smtp.mode = 'defer'
  await box.smtp.until(() => box.smtp.seen.recipients === 1)
  await worker.stop()

  const [job] = await box.jobs()
  assert.equal(job!.attempts, 2)
  assert.equal(job!.last_error, 'MailFailure EENVELOPE RCPT TO 451')
  assert.deepEqual(Object.keys(job!.payload).sort(), ['code_id', 'language', 'sealed'])

  box.smtp.mode = 'accept'
  await box.sql`select graphile_worker.reschedule_jobs(array[${job!.id}::bigint], run_at => now())`
  const next = await box.work()
  await box.smtp.until(() => box.smtp.mails.length === 1)
  await next.stop()
  assert.deepEqual(await box.jobs(), [])
  const code = codeIn(box.smtp.mails[0]!)
  assert.doesNotMatch(JSON.stringify(job), new RegExp(`zoe|example\\.com|"${code}"`))
  const said = box.logged.map(({ time, ...line }) => line)
  assert.doesNotMatch(JSON.stringify(said), new RegExp(`zoe|example\\.com|${job!.payload.sealed}|\\b${code}\\b`))
})

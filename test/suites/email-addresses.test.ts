import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { domainToASCII } from 'node:url'
import { sendCode } from '../../src/auth/send-code.ts'
import { createSmtpMailer } from '../../src/mail/smtp.ts'
import { harness } from '../support/app.ts'
import { FROM, TEXTS } from '../support/outbox.ts'
import { profile } from '../support/scenario.ts'
import { type SmtpServer, smtpServer } from '../support/smtp.ts'
import { describeAnswer, readSuite, skip } from '../support/suites.ts'

type Case = { address: string; category: string }

describe('the addresses of isemail', { skip }, () => {
  const h = harness()
  const cases = readSuite<Case[]>('email-addresses.json')
  let smtp: SmtpServer
  before(async () => {
    smtp = await smtpServer()
  })
  after(() => smtp.close())

  /** Mails the newest sign-in code, as a worker does. @returns the recipients of each mail */
  async function mailNewest(): Promise<string[][]> {
    const { sql } = h.database
    const mailer = createSmtpMailer(smtp.url, { from: FROM })
    const [delivery] = await sql<{ code_id: string; payload: unknown }>`
      select code_id, payload from outbox order by id desc limit 1`
    await sendCode({ sql, mailer, keys: h.ctx.keys, now: h.clock.now, log: h.ctx.log, texts: TEXTS })(delivery!)
    return smtp.mails.splice(0).map(mail => mail.to.map(inAscii))
  }

  async function requestCode(address: string) {
    // The suite contains some addresses twice, and the service sends at most one code per minute to an address. So the
    // clock moves forward by a minute before each request.
    h.clock.advance(60_000)
    return h.call('POST', '/api/v1/auth/request-otp', { body: profile(address) })
  }

  test('an invalid address is refused, and the mail to an accepted address has this address as its only recipient', async () => {
    for (const { address, category } of cases) {
      const answer = await requestCode(address)
      if (answer.status === 200) {
        assert.ok(category !== 'ISEMAIL_ERR' || trimmed(address) !== address, describeAnswer(address, answer))
        assert.deepEqual(await mailNewest(), [[mailbox(address)]], describeAnswer(address, answer))
      } else {
        assert.equal(answer.status, 422, describeAnswer(address, answer))
        assert.deepEqual(Object.keys(answer.body.errors), ['email'], describeAnswer(address, answer))
      }
    }
  })

  test('every plain address with a dot in its domain is accepted', async () => {
    const refused: string[] = []
    for (const { address, category } of cases) {
      if (!['ISEMAIL_VALID_CATEGORY', 'ISEMAIL_DNSWARN'].includes(category) || !/@.*\./.test(address)) continue
      if ((await requestCode(address)).status !== 200) refused.push(address)
    }
    assert.deepEqual(refused, [])
  })
})

function trimmed(address: string): string {
  return address.replace(/^[ \t]+|[ \t]+$/g, '')
}

/**
 * Encodes the domain of a recipient in punycode. The mailer sends the domain in punycode, but the SMTP server of the
 * tests decodes it.
 */
function inAscii(recipient: string): string {
  const at = recipient.lastIndexOf('@') + 1
  return recipient.slice(0, at) + domainToASCII(recipient.slice(at))
}

/** Returns the address as the service stores it: in lower case, with an internationalised domain as punycode. */
function mailbox(address: string): string {
  const [local, domain] = trimmed(address).split('@')
  return `${local!.toLowerCase()}@${domainToASCII(domain!)}`
}

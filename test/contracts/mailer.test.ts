import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { ParsedMail } from 'mailparser'
import { createMailbox } from '../../src/mail/mailbox.ts'
import { type Mail, type Mailer, MailFailure } from '../../src/mail/mailer.ts'
import { createSmtpMailer } from '../../src/mail/smtp.ts'
import { watchMailer } from '../../src/mail/watch-mailer.ts'
import { smtpServer } from '../support/smtp.ts'

/** A mailer under test. `readArrived` returns the mails that the mailer delivered, oldest first. */
type OpenMailer = { mailer: Mailer; readArrived(): Mail[]; close(): Promise<void> }

/** The headers of a mail about unread notifications. The address is longer than a line of a mail may be. */
const HEADERS = {
  'List-Unsubscribe': `<https://courtside.example.com/${'long/'.repeat(40)}unsubscribe/42.abcdefghijklmnopqrstuv>`,
  'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
  'List-Id': '<notifications.example.com>',
  'Message-ID': '<digest.42.abc@example.com>',
  'Feedback-ID': 'urgent:digest:notifications:courtside',
}

const MAIL: Mail = {
  to: 'zoe@example.com',
  subject: 'Votre code\u00a0: 1234 — déjà',
  text: 'Bonjour Zoë,\n\n1234\n',
  html: '<p>Bonjour Zoë,</p>\n<p>1234</p>\n',
}

const IMPLEMENTATIONS: Record<string, () => Promise<OpenMailer>> = {
  async smtp() {
    const server = await smtpServer()
    return {
      mailer: createSmtpMailer(server.url, { from: 'Courtside <no-reply@example.com>' }),
      readArrived: () =>
        server.mails.map(({ to, parsed }) => {
          const headers = readHeaders(parsed)
          return {
            to: to.join(' and '),
            subject: parsed.subject!,
            text: parsed.text!,
            html: parsed.html as string,
            ...(Object.keys(headers).length > 0 && { headers }),
          }
        }),
      close: server.close,
    }
  },
  async mailbox() {
    const mailbox = createMailbox(() => new Date())
    return {
      mailer: mailbox,
      readArrived: () =>
        mailbox
          .latest()
          .map(({ sentAt, ...mail }) => mail)
          .reverse(),
      close: async () => {},
    }
  },
}

/** Returns the headers of a received mail that `HEADERS` names. Every mail has a Message-ID, so only ours counts. */
function readHeaders({ headerLines }: ParsedMail): Record<string, string> {
  return Object.fromEntries(
    Object.keys(HEADERS).flatMap(name => {
      const lines = headerLines.filter(({ key }) => key === name.toLowerCase())
      assert.ok(lines.length <= 1, name)
      const value = lines[0]?.line.replace(/^[^:]+:\s*/, '').replaceAll('\r\n', '')
      return value === undefined || (name === 'Message-ID' && !value.includes('digest')) ? [] : [[name, value]]
    }),
  )
}

test('the smtp mailer asks whether a mail is current after the server has taken the recipient', async t => {
  const server = await smtpServer()
  t.after(() => server.close())
  const mailer = createSmtpMailer(server.url, { from: 'no-reply@example.com' })
  const seen: number[] = []
  await mailer.send(MAIL, async () => {
    seen.push(server.seen.recipients, server.mails.length)
    return true
  })
  assert.deepEqual(seen, [1, 0])
  assert.equal(server.mails.length, 1)
})

test('a watched mailer fails always after five failures of the mail server, and not after those of the caller', async () => {
  const server = await smtpServer()
  const watched = watchMailer(createSmtpMailer(server.url, { from: 'no-reply@example.com' }))
  const fail = async (isCurrent: () => Promise<boolean>) => {
    for (let count = 0; count < 5; count += 1) await assert.rejects(watched.send(MAIL, isCurrent))
    return watched.failsAlways()
  }
  assert.equal(await fail(() => Promise.reject(new Error('no database'))), false)
  await server.close()
  assert.equal(await fail(async () => true), true)
})

for (const [name, open] of Object.entries(IMPLEMENTATIONS)) {
  suite(`the ${name} mailer`, () => {
    const cases: Record<string, (opened: OpenMailer) => Promise<void>> = {
      'a mail arrives unchanged': async ({ mailer, readArrived: arrived }) => {
        await mailer.send(MAIL)
        assert.deepEqual(arrived(), [MAIL])
      },
      'the headers of a mail arrive unchanged, each once': async ({ mailer, readArrived: arrived }) => {
        await mailer.send({ ...MAIL, headers: HEADERS })
        assert.deepEqual(arrived(), [{ ...MAIL, headers: HEADERS }])
      },
      'a mail whose content is still current arrives': async ({ mailer, readArrived: arrived }) => {
        await mailer.send(MAIL, async () => true)
        assert.deepEqual(arrived(), [MAIL])
      },
      'a mail whose content is no longer current does not arrive': async ({ mailer, readArrived: arrived }) => {
        await assert.rejects(
          mailer.send(MAIL, async () => false),
          (error: MailFailure) => {
            assert.equal(error.name, 'MailWithdrawn')
            return error.permanent === false && error.isAboutMail
          },
        )
        await mailer.send({ ...MAIL, subject: 'next' })
        assert.deepEqual(
          arrived().map(mail => mail.subject),
          ['next'],
        )
      },
      'if nothing can say whether a mail is current, it does not arrive': async ({ mailer, readArrived: arrived }) => {
        await assert.rejects(
          mailer.send(MAIL, async () => {
            throw new Error('no database')
          }),
          { name: 'Error', message: 'no database' },
        )
        assert.deepEqual(arrived(), [])
      },
      'mails arrive in the order in which they were sent': async ({ mailer, readArrived: arrived }) => {
        await mailer.send({ ...MAIL, subject: 'one' })
        await mailer.send({ ...MAIL, subject: 'two' })
        assert.deepEqual(
          arrived().map(mail => mail.subject),
          ['one', 'two'],
        )
      },
      'markup in the text of a mail arrives unchanged, as plain text': async ({ mailer, readArrived: arrived }) => {
        await mailer.send({ ...MAIL, text: '<script>alert(1)</script> .\n.\nFrom here\n' })
        assert.equal(arrived()[0]!.text, '<script>alert(1)</script> .\n.\nFrom here\n')
      },
    }
    for (const [title, check] of Object.entries(cases)) {
      test(title, async () => {
        const opened = await open()
        try {
          await check(opened)
        } finally {
          await opened.close()
        }
      })
    }

    const unsafeMails: Record<string, Partial<Mail>> = {
      'a list of addresses': { to: 'zoe@example.com, eve@evil.example' },
      'a quoted list of addresses': { to: '"zoe@example.com, eve"@evil.example' },
      'a list of addresses with semicolons': { to: 'zoe@example.com;eve@evil.example' },
      'a display name in the address': { to: 'Zoe <zoe@example.com>' },
      'a second line in the address': { to: 'zoe@example.com\r\nRCPT TO:<eve@evil.example>' },
      'a group of addresses': { to: 'friends:zoe@example.com,eve@evil.example;' },
      'a comment in the address': { to: 'zoe(x)@example.com' },
      'no address': { to: '' },
      'a second line in the subject': { subject: 'Code\r\nBcc: eve@evil.example' },
      'a NUL in the subject': { subject: 'Code\0' },
      'a second line in a header': { headers: { 'List-Id': '<a>\r\nBcc: eve@evil.example' } },
      'a second header in the name of a header': { headers: { 'A: b\r\nBcc': 'eve@evil.example' } },
      'a letter outside ASCII in a header': { headers: { 'List-Id': '<eve\u00e9>' } },
      'a DEL in the subject': { subject: 'Code\x7f' },
      'a line separator in the subject': { subject: 'Code\u2028Bcc: eve@evil.example' },
      'a paragraph separator in the subject': { subject: 'Code\u2029Bcc: eve@evil.example' },
    }
    for (const [title, parts] of Object.entries(unsafeMails)) {
      test(`a mail with ${title} is rejected permanently, and the error contains no address`, async () => {
        const opened = await open()
        try {
          await assert.rejects(opened.mailer.send({ ...MAIL, ...parts }), (error: MailFailure) => {
            assert.ok(error instanceof MailFailure)
            assert.equal(error.permanent, true)
            assert.doesNotMatch(error.message, /zoe|eve/)
            return true
          })
          assert.deepEqual(opened.readArrived(), [])
        } finally {
          await opened.close()
        }
      })
    }
  })
}

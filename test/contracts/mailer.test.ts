import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { createMailbox } from '../../src/mail/mailbox.ts'
import { type Mail, type Mailer, MailFailure } from '../../src/mail/mailer.ts'
import { createSmtpMailer } from '../../src/mail/smtp.ts'
import { smtpServer } from '../support/smtp.ts'

/** A mailer under test. `readArrived` returns the mails that the mailer delivered, oldest first. */
type OpenMailer = { mailer: Mailer; readArrived(): Mail[]; close(): Promise<void> }

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
        server.mails.map(({ to, parsed }) => ({
          to: to.join(' and '),
          subject: parsed.subject!,
          text: parsed.text!,
          html: parsed.html as string,
        })),
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

for (const [name, open] of Object.entries(IMPLEMENTATIONS)) {
  suite(`the ${name} mailer`, () => {
    const cases: Record<string, (opened: OpenMailer) => Promise<void>> = {
      'a mail arrives unchanged': async ({ mailer, readArrived: arrived }) => {
        await mailer.send(MAIL)
        assert.deepEqual(arrived(), [MAIL])
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

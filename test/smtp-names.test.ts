import assert from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import dns from 'node:dns'
import { once } from 'node:events'
import { test } from 'node:test'
import { readConfig } from '../src/config.ts'
import { createSmtpMailer } from '../src/mail/smtp.ts'
import { smtpServer } from './support/smtp.ts'

const MAIL = { to: 'zoe@example.com', subject: 'Code', text: 'Bonjour\n', html: '<p>Bonjour</p>\n' }

test('a mail to a server that the hosts file names does not wait for a silent DNS server', async t => {
  const silent = createSocket('udp4').bind(0, '127.0.0.1')
  await once(silent, 'listening')
  let queries = 0
  silent.on('message', () => {
    queries += 1
  })
  const smtp = await smtpServer()
  const servers = dns.getServers()
  dns.setServers([`127.0.0.1:${silent.address().port}`])
  t.after(async () => {
    dns.setServers(servers)
    silent.close()
    await smtp.close()
  })
  const url = smtp.url.replace('127.0.0.1', 'localhost')
  await createSmtpMailer(url, 'Courtside <no-reply@example.com>').send(MAIL)
  assert.equal(smtp.mails.length, 1)
  assert.equal(queries, 0)
})

test('the name of the sender arrives as MAIL_FROM states it', async t => {
  const smtp = await smtpServer()
  t.after(() => smtp.close())
  for (const name of ['Club 4: Padel', 'Padel (Paris)', 'Padel, Club', 'Pädel “Club”', "L'Été"]) {
    const { mailFrom } = readConfig({ MAIL_FROM: `"${name}" <hello@club.example>` })
    await createSmtpMailer(smtp.url, mailFrom).send(MAIL)
    assert.deepEqual(smtp.mails.at(-1)!.parsed.from!.value, [{ name, address: 'hello@club.example' }])
  }
})

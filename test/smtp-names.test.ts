import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import dns from 'node:dns'
import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { SMTPServer } from 'smtp-server'
import { readConfig } from '../src/config.ts'
import { MailFailure } from '../src/mail/mailer.ts'
import { openSocket } from '../src/mail/open-socket.ts'
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
  await createSmtpMailer(url, { from: 'Courtside <no-reply@example.com>' }).send(MAIL)
  assert.equal(smtp.mails.length, 1)
  assert.equal(queries, 0)
})

test('a connection that the mail server does not accept fails after its limit', async t => {
  // The process does not accept connections, so connections beyond its queue of two are never established.
  const script = `require('node:net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, function () {
    console.log(this.address().port)
    process.kill(process.pid, 'SIGSTOP')
  })`
  const stopped = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [line] = await once(stopped.stdout, 'data')
  const sockets: Socket[] = []
  t.after(() => {
    stopped.kill('SIGKILL')
    for (const socket of sockets) socket.destroy()
  })
  const open = () => openSocket('127.0.0.1', Number(line), 500).then(socket => sockets.push(socket))
  for (let count = 0; count < 2; count += 1) await open()
  await assert.rejects(open(), { code: 'ETIMEDOUT' })
})

test('the name of the sender arrives as MAIL_FROM states it', async t => {
  const smtp = await smtpServer()
  t.after(() => smtp.close())
  for (const name of ['Club 4: Padel', 'Padel (Paris)', 'Padel, Club', 'Pädel “Club”', "L'Été"]) {
    const { mailFrom } = readConfig({ MAIL_FROM: `"${name}" <hello@club.example>` })
    await createSmtpMailer(smtp.url, { from: mailFrom }).send(MAIL)
    assert.deepEqual(smtp.mails.at(-1)!.parsed.from!.value, [{ name, address: 'hello@club.example' }])
  }
})

/** Starts a mail server that does not offer STARTTLS. @returns its port, the names in greetings, and the passwords */
async function startPlainServer(t: TestContext) {
  const names: string[] = []
  const passwords: string[] = []
  const server = new SMTPServer({
    authOptional: true,
    allowInsecureAuth: true,
    disabledCommands: ['STARTTLS'],
    onAuth({ password }, _session, done) {
      passwords.push(password!)
      done(null, { user: 'club' })
    },
    onMailFrom(_address, { hostNameAppearsAs }, done) {
      names.push(hostNameAppearsAs as string)
      done()
    },
  })
  server.on('error', () => {})
  server.listen(0)
  await once(server.server, 'listening')
  t.after(() => new Promise<void>(done => server.close(done)))
  return { port: (server.server.address() as AddressInfo).port, names, passwords }
}

test('a password is not sent in clear to a mail server on another machine', async t => {
  const { port, passwords } = await startPlainServer(t)
  const from = 'Courtside <no-reply@example.com>'
  // The operating system connects 0.0.0.0 to this machine, but 0.0.0.0 is not a loopback address.
  await assert.rejects(createSmtpMailer(`smtp://club:secret@0.0.0.0:${port}`, { from }).send(MAIL), MailFailure)
  assert.deepEqual(passwords, [])
  await createSmtpMailer(`smtp://club:secret@127.0.0.1:${port}`, { from }).send(MAIL)
  assert.deepEqual(passwords, ['secret'])
})

test('SMTP_HELO_NAME is the name in the greeting', async t => {
  const { port, names } = await startPlainServer(t)
  const { mailFrom: from, smtpHeloName: heloName } = readConfig({ SMTP_HELO_NAME: 'mail.club.example' })
  await createSmtpMailer(`smtp://127.0.0.1:${port}`, { from, heloName }).send(MAIL)
  assert.deepEqual(names, ['mail.club.example'])
})

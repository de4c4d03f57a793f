import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { suite, type TestContext, test } from 'node:test'
import type { Mail, MailFailure } from '../src/mail/mailer.ts'
import { createSmtpMailer } from '../src/mail/smtp.ts'
import { waitUntil } from './support/wait-until.ts'

const MAIL: Mail = { to: 'zoe@example.com', subject: 's', text: 'content', html: '<p>content</p>' }

/** Decides what the server does instead of its usual reply. Returns whether it has done something. */
type Fault = (step: { command: string; connection: number; socket: Socket }) => boolean | undefined

/**
 * Starts a mail server whose faults a test decides. `commands` contains one list of commands for each connection. The
 * command `.` is the end of a content.
 */
async function startServer(t: TestContext, fault: Fault = () => false) {
  const commands: string[][] = []
  const contents: string[] = []
  const sockets = new Set<Socket>()
  const server = createServer(socket => {
    const connection = commands.push([]) - 1
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket)).on('error', () => {})
    let isContent = false
    let content = ''
    let received = ''
    socket.write('220 test\r\n')
    socket.on('data', chunk => {
      received += chunk
      for (let end = received.indexOf('\r\n'); end >= 0; end = received.indexOf('\r\n')) {
        const line = received.slice(0, end)
        received = received.slice(end + 2)
        if (isContent && line !== '.') {
          content += `${line}\n`
          continue
        }
        if (isContent) contents.push(content)
        content = ''
        isContent = line === 'DATA'
        const command = line.split(' ')[0]!
        commands[connection]!.push(command)
        if (fault({ command, connection, socket })) continue
        if (command === 'QUIT') socket.end('221 bye\r\n')
        else if (!socket.writableEnded) socket.write(isContent ? '354 go on\r\n' : '250 taken\r\n')
      }
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return {
    mailer: createSmtpMailer(`smtp://127.0.0.1:${port}`, { from: 'no-reply@example.com' }),
    commands,
    contents,
    sockets,
    /** The number of contents that the server has received on all connections. */
    countContents: () => commands.flat().filter(command => command === '.').length,
  }
}

suite('connections to the mail server', { concurrency: true }, () => {
  test('mails that follow each other use one connection, which is closed with QUIT when no mail follows', async t => {
    const { mailer, commands, sockets, countContents } = await startServer(t)
    for (let count = 0; count < 5; count += 1) await mailer.send(MAIL)
    assert.deepEqual([commands.length, countContents()], [1, 5])
    await waitUntil(() => sockets.size === 0)
    assert.equal(commands[0]!.at(-1), 'QUIT')
  })

  test('mails that are sent at the same time use different connections', async t => {
    const { mailer, commands, countContents } = await startServer(t)
    for (let round = 0; round < 2; round += 1) await Promise.all(Array.from({ length: 10 }, () => mailer.send(MAIL)))
    assert.deepEqual([commands.length, countContents()], [10, 20])
  })

  test('a decoy leaves a kept connection alone', async t => {
    const { mailer, commands } = await startServer(t)
    await mailer.send(MAIL)
    const before = commands[0]!.length
    for (let count = 0; count < 5; count += 1) await mailer.compose(MAIL)
    assert.deepEqual([commands.length, commands[0]!.length], [1, before])
  })

  test('after a refused recipient, the connection takes further mails', async t => {
    const { mailer, commands } = await startServer(t, ({ command, socket }) => {
      if (command !== 'RCPT' || commands[0]!.includes('RSET')) return false
      return socket.write('550 5.1.1 unknown\r\n') || true
    })
    await assert.rejects(mailer.send(MAIL), ({ permanent, isHardBounce }: MailFailure) => permanent && isHardBounce)
    await waitUntil(async () => {
      await mailer.send(MAIL)
      return commands[0]!.includes('.')
    })
  })

  const breaks: Record<string, (socket: Socket) => unknown> = {
    closes: socket => socket.end(),
    resets: socket => socket.resetAndDestroy(),
    'says 421 on': socket => socket.end('421 4.4.2 too old\r\n'),
    'does not answer on': () => undefined,
  }
  for (const [name, end] of Object.entries(breaks)) {
    test(`if the server ${name} a kept connection when the next mail begins, the mail arrives once over a new one`, async t => {
      const server = await startServer(t, ({ command, connection, socket }) => {
        if (connection > 0 || command !== 'MAIL' || server.countContents() === 0) return false
        end(socket)
        return true
      })
      await server.mailer.send(MAIL)
      await server.mailer.send(MAIL)
      assert.deepEqual([server.commands.length, server.countContents()], [2, 2])
    })

    if (name === 'does not answer on') continue
    test(`if the server ${name} a kept connection before the content leaves, the mail arrives whole over a new one`, async t => {
      const server = await startServer(t, ({ command, connection, socket }) => {
        if (connection > 0 || command !== 'DATA' || server.countContents() === 0) return false
        socket.write('354 go on\r\n')
        setTimeout(() => end(socket), 20)
        return true
      })
      await server.mailer.send(MAIL)
      const checks: number[] = []
      await server.mailer.send(MAIL, async () => {
        checks.push(server.commands.length)
        await new Promise(resolve => setTimeout(resolve, 100))
        return true
      })
      assert.deepEqual([server.commands.length, server.countContents(), checks], [2, 2, [1, 2]])
      for (const content of server.contents) assert.match(content, /^content$/m)
    })

    test(`if the server ${name} an idle connection, the next mail arrives once`, async t => {
      const { mailer, commands, sockets, countContents } = await startServer(t)
      for (let mails = 1; mails <= 20; mails += 1) {
        await mailer.send(MAIL)
        assert.equal(countContents(), mails)
        for (const socket of sockets) end(socket)
      }
      assert.equal(commands.length, 20)
    })

    for (const kept of [false, true]) {
      test(`if the server ${name} a ${kept ? 'kept' : 'new'} connection instead of confirming the content, the outcome is unknown and the mailer sends nothing again`, async t => {
        const { mailer, commands, countContents } = await startServer(t, ({ command, socket }) => {
          if (command !== '.' || (kept && countContents() === 1)) return false
          end(socket)
          return true
        })
        if (kept) await mailer.send(MAIL)
        await assert.rejects(mailer.send(MAIL), ({ permanent, isAboutMail, isAnswer }: MailFailure) => {
          assert.deepEqual([permanent, isAboutMail, isAnswer], [false, false, name === 'says 421 on'])
          return true
        })
        // The mailer would repeat a mail within this time.
        await new Promise(resolve => setTimeout(resolve, 1_000))
        assert.deepEqual([commands.length, countContents()], [1, kept ? 2 : 1])
      })
    }
  }
})

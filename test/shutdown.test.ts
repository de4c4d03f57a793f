import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { test } from 'node:test'
import { migrationLockKey } from '../src/db/own-schema.ts'
import { settingsFor } from './support/app.ts'
import { testDatabase } from './support/database.ts'
import { openStream } from './support/event-stream.ts'
import { countAnnouncements, makePlayers, signUpByMail, startLoad } from './support/load.ts'
import { run, type Service, startService } from './support/service.ts'
import { smtpServer } from './support/smtp.ts'
import { waitUntil } from './support/wait-until.ts'

const ROUNDS = 3

test('a process that gets SIGTERM under load loses no acknowledged request and ends within 10 s', {
  timeout: 120_000,
}, async t => {
  const database = await testDatabase()
  const smtp = await smtpServer()
  const env = {
    ...settingsFor(database.url, smtp.url),
    THROTTLE_REQUEST_OTP: '1000000',
  }
  const services: Service[] = []
  let load: ReturnType<typeof startLoad> | undefined
  t.after(async () => {
    await load?.stop()
    await services[0]?.stop('SIGKILL')
    await smtp.close()
    await database.drop()
  })
  services[0] = await startService(env)
  const players = await makePlayers(database.sql)
  const token = await signUpByMail(services, smtp, 'reader@example.com')
  load = startLoad(services, players)
  const { emails, scores } = load.acknowledged

  for (let round = 1; round <= ROUNDS; round += 1) {
    await load.more()
    const stream = await openStream(services[0]!.address, token)
    assert.equal((await stream.next()).event, 'sync')
    const signalled = performance.now()
    assert.equal(await services[0]!.stop('SIGTERM'), 0)
    assert.ok(performance.now() - signalled < 10_000)
    assert.equal(await stream.ended(), true)
    services[0] = await startService(env)
  }
  await load.stop()

  const counts = await countAnnouncements(database.sql)
  for (const id of scores) assert.equal(counts.get(id), 3, `score ${id}`)
  const mailsTo = (email: string) => smtp.mails.filter(mail => mail.to.includes(email)).length
  await smtp.until(() => [...emails].every(email => mailsTo(email) > 0))
  // Before a worker stops, it finishes the mail that it is sending. So no mail is sent twice.
  for (const email of emails) assert.equal(mailsTo(email), 1, email)

  assert.equal(await services[0]!.stop(), 0)
})

test('a mail server that falls silent after its greeting does not delay the exit', async t => {
  const database = await testDatabase()
  const sockets = new Set<Socket>()
  const server = createServer(socket => {
    sockets.add(socket.on('error', () => {}))
    socket.write('220 mail.example.com ESMTP\r\n')
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const service = await startService({ ...settingsFor(database.url, `smtp://127.0.0.1:${port}`), LOG_LEVEL: 'info' })
  t.after(async () => {
    await service.stop('SIGKILL')
    for (const socket of sockets) socket.destroy()
    server.close()
    await database.drop()
  })
  for (let user = 0; user < 5; user += 1) {
    const answer = await fetch(`${service.address}/api/v1/auth/request-otp`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ email: `silent${user}@example.com`, first_name: 'A', last_name: 'B', accept_cgu: true }),
    })
    assert.equal(answer.status, 200)
  }
  await waitUntil(() => sockets.size > 0)
  const signalled = performance.now()
  assert.equal(await service.stop('SIGTERM'), 0)
  assert.ok(performance.now() - signalled < 10_000)
  assert.ok(service.lines.some(line => line.includes('"stopped"')))
})

test('SIGTERM ends a starting node that waits for the migration of another process', async t => {
  const database = await testDatabase()
  t.after(() => database.drop())
  // The node finds that the newest migration is missing. It does not run the migration, because it gets no lock.
  await database.sql`delete from migration where name = (select max(name) from migration)`
  await database.sql.begin(async tx => {
    // The transaction takes the advisory lock of the migrations, so the node waits for this lock.
    await tx`select pg_advisory_xact_lock(${migrationLockKey(database.url)})`
    const child = run(['serve'], { PORT: '0', ...settingsFor(database.url) })
    t.after(() => child.kill('SIGKILL'))
    await waitUntil(async () => {
      const waiting = await database.sql`
        select from pg_stat_activity
        where datname = current_database() and query like 'select pg_try_advisory_lock%'`
      return waiting.length > 0
    })
    child.kill('SIGTERM')
    assert.deepEqual(await once(child, 'exit'), [1, null])
  })
})

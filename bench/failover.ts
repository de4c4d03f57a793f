// node bench/failover.ts [--asynchronous] [--frozen] runs a primary and a streaming standby of an installed PostgreSQL.
// The folder of PostgreSQL's programs comes from TEST_PG_BIN, or from pg_config if TEST_PG_BIN is not set. The program
// kills the primary with SIGKILL under load, and promotes the standby one second later. It prints after how many
// seconds events, reads, codes, mails and the stream worked again, and how many acknowledged writes were lost. It fails
// if one of these needs more than 10 s, or if a synchronous standby lost a write. With `--asynchronous`, the primary
// does not wait for the standby before it acknowledges a commit. With `--frozen`, the program stops the primary with
// SIGSTOP instead. Its connections then stay open without a reply, as if its machine had lost its power. The limit is
// then 20 s.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { SMTPServer } from 'smtp-server'
import { migrate } from '../src/db/migrate.ts'
import { type Acknowledged, startListening, startWriting } from './failover/clients.ts'
import { startPair } from './failover/pair.ts'
import { administer } from './postgres.ts'
import { freePort, startService } from './programs.ts'
import { callers, seedService } from './seed.ts'

const SEED = { users: 100, notifications: 10_000 }

const flag = { type: 'boolean', default: false } as const
const { values: options } = parseArgs({ options: { asynchronous: flag, frozen: flag } })
const maxSeconds = options.frozen ? 20 : 10
const bin = process.env.TEST_PG_BIN ?? execFileSync('pg_config', ['--bindir']).toString().trim()
const pair = await startPair(bin, !options.asynchronous)
const mailed: { to: string; at: number }[] = []
const mailServer = await startMailServer()
try {
  await migrate(pair.primaryUrl)
  await seedService(pair.primaryUrl, SEED)
  const service = await startService(pair.url, {
    ROLE: 'all',
    SMTP_URL: `smtp://127.0.0.1:${mailServer.port}`,
    TRUST_PROXY: '',
  })
  const address = `http://127.0.0.1:${service.port}`
  const people = callers(SEED.users)
  const acknowledged: Acknowledged = { events: [], reads: new Map(), codes: [], times: {} }
  const stopWriting = startWriting(address, people, acknowledged)
  const listening = startListening(address, people[0]!)

  const all = () => ({ ...acknowledged.times, stream: listening.receivedAt, mails: mailed.map(({ at }) => at) })
  // Kill the primary only after at least five successes of each kind: events, reads, codes, notifications on the
  // stream, and mails.
  while (Object.values(all()).some(times => times.length < 5)) await delay(100)
  await delay(3_000)
  await (options.frozen ? pair.freezePrimary() : pair.killPrimary())
  const killedAt = performance.now()
  const askedBefore = new Set(acknowledged.codes)
  await delay(1_000)
  await pair.promote()
  await delay(maxSeconds * 1000)
  await stopWriting()
  // The last acknowledged writes cause notifications and mails. Wait until these have arrived.
  await delay(2_000)
  await listening.stop()

  const recoveries = Object.entries(all()).map(([name, times]) => {
    const before = times.filter(at => at <= killedAt).length
    // Answers that arrive in the first 100 ms after the kill do not count, because the service may have sent them
    // before the kill. A mail counts only if a client requested its code after the kill.
    const since = name === 'mails' ? mailed.filter(({ to }) => !askedBefore.has(to)).map(({ at }) => at) : times
    const first = since.find(at => at > killedAt + 100) ?? Number.POSITIVE_INFINITY
    return { name, before, after: times.length - before, seconds: (first - killedAt) / 1000 }
  })
  console.table(recoveries.map(each => ({ ...each, seconds: each.seconds.toFixed(2) })))
  const lost = await countLosses(pair.standbyUrl, acknowledged)
  console.log(`${options.asynchronous ? 'asynchronous' : 'synchronous'} replication; lost acknowledged writes:`, lost)
  for (const { name, seconds } of recoveries)
    assert.ok(seconds <= maxSeconds, `${name} took ${seconds} s to work again`)
  if (!options.asynchronous) assert.deepEqual(lost, { events: 0, reads: 0, codes: 0 })
  await service.stop()
} finally {
  await mailServer.close()
  await pair.stop()
}

async function startMailServer() {
  const port = await freePort()
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onData(stream, { envelope }, done) {
      stream.resume().on('end', () => {
        mailed.push({ to: envelope.rcptTo[0]!.address, at: performance.now() })
        done()
      })
    },
  })
  await new Promise<void>(resolve => server.listen(port, '127.0.0.1', resolve))
  return { port, close: () => new Promise<void>(resolve => server.close(() => resolve())) }
}

/** Counts the acknowledged writes that are missing in the new primary. */
async function countLosses(url: string, { events, reads, codes }: Acknowledged) {
  const keys = events.map(id => createHash('sha256').update(`/bench\0${id}`).digest('base64url'))
  const [row] = await administer(
    url,
    `select (select count(*)::int from event where key = any('{${keys.join(',')}}')) as events,
      (select count(*)::int from notification
        where read_at is not null and id = any('{${[...reads.keys()].join(',')}}')) as reads,
      (select count(*)::int from sign_in_code where email = any('{${codes.join(',')}}')) as codes`,
  )
  return { events: events.length - row!.events, reads: reads.size - row!.reads, codes: codes.length - row!.codes }
}

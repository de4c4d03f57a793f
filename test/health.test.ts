import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { migrate } from '../src/db/migrate.ts'
import { startThrowAway } from '../src/embedded/throw-away.ts'
import { createSmtpMailer } from '../src/mail/smtp.ts'
import { anotherApp, harness } from './support/app.ts'
import { type Mode, smtpServer } from './support/smtp.ts'

const h = harness()

test('/healthz and /readyz answer 200 without a token', async () => {
  for (const [path, status] of [
    ['/healthz', 'ok'],
    ['/readyz', 'ready'],
  ] as const) {
    const answer = await h.call('GET', path)
    assert.deepEqual([answer.status, answer.body], [200, { status }])
  }
})

test('while the database is down, /readyz and the API answer 503 and /healthz answers 200', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'courtside-health-'))
  const cluster = await startThrowAway(folder, h.ctx.log, { bin: process.env.TEST_PG_BIN })
  await migrate(cluster.url)
  const { call, close } = await anotherApp(h, {}, { databaseUrl: cluster.url })
  try {
    assert.equal((await call('GET', '/readyz')).status, 200)
    await cluster.stop()
    for (const url of ['/readyz', '/readyz', '/api/v1/game-levels']) {
      const answer = await call('GET', url, { headers: { 'accept-language': 'en' } })
      assert.deepEqual([answer.status, answer.headers['retry-after']], [503, '5'])
      assert.deepEqual(answer.body, { message: 'Service unavailable. Try again soon.', code: 'unavailable' })
    }
    assert.equal((await call('GET', '/healthz')).status, 200)
  } finally {
    await close()
    await cluster.stop()
    await rm(folder, { recursive: true, force: true })
  }
})

test('/readyz answers 200 while all writes wait for a lock', async () => {
  const waiting: Promise<unknown>[] = []
  await h.database.sql.begin(async tx => {
    await tx`select pg_advisory_xact_lock(1)`
    for (let count = 0; count < 5; count += 1) waiting.push(h.ctx.sql`select from pg_advisory_xact_lock_shared(1)`)
    assert.equal((await h.call('GET', '/readyz')).status, 200)
  })
  await Promise.all(waiting)
})

test('/readyz reads no budget of wrong guesses while the budgets are off', async () => {
  await h.database.sql`alter table sign_in_installation rename to away`
  assert.deepEqual((await h.call('GET', '/readyz')).body, { status: 'ready' })
  await h.database.sql`alter table away rename to sign_in_installation`
})

describe('the warning of /readyz about the mail server', () => {
  const WARNING = 'the mail server takes no mail of this process'
  const MAIL = { to: 'a@example.com', subject: 's', text: 't', html: 'h' }

  /** Starts a service and a real mail server. @returns functions that send mails in one mode, and read the warning */
  async function start(t: TestContext) {
    const server = await smtpServer()
    const mailer = createSmtpMailer(server.url, { from: 'no-reply@example.com', heloName: undefined })
    const { ctx, app, close } = await anotherApp(h, {}, { mailer })
    t.after(async () => {
      await close()
      await server.close()
    })
    return {
      async send(mode: Mode, count: number) {
        server.mode = mode
        for (let mail = 0; mail < count; mail += 1) await ctx.mailer.send(MAIL).catch(() => {})
      },
      readWarning: async (from: { remoteAddress?: string; headers?: Record<string, string> } = {}) =>
        (await app.inject({ url: '/readyz', ...from })).json().warning,
    }
  }

  test('the warning appears after five failures in a row that are about the server or the sender', async t => {
    for (const mode of ['refuse', 'block'] as const) {
      const { send, readWarning } = await start(t)
      await send(mode, 4)
      await send('accept', 1)
      await send(mode, 4)
      assert.equal(await readWarning(), undefined)
      await send(mode, 1)
      assert.equal(await readWarning(), WARNING)
    }
  })

  test('recipients that the mail server refuses cause no warning, and do not end one', async t => {
    const { send, readWarning } = await start(t)
    await send('reject', 6)
    await send('defer', 6)
    assert.equal(await readWarning(), undefined)
    await send('refuse', 5)
    await send('reject', 1)
    assert.equal(await readWarning(), WARNING)
  })

  test('only requests from this machine get the warning, and the next mail ends it', async t => {
    const { send, readWarning } = await start(t)
    await send('refuse', 5)
    assert.equal(await readWarning({ remoteAddress: '192.0.2.1' }), undefined)
    assert.equal(await readWarning(), WARNING)
    await send('accept', 1)
    assert.equal(await readWarning(), undefined)
    await send('refuse', 5)
    assert.doesNotMatch(await readWarning({ headers: { 'x-forwarded-for': '192.0.2.1' } }), /mail/)
  })
})

test('/readyz answers 503 if one migration or the whole migration table is missing', async () => {
  await h.database.sql`delete from migration where name like '0001%'`
  const behind = await h.call('GET', '/readyz')
  await h.database.sql`drop table migration`
  for (const answer of [behind, await h.call('GET', '/readyz')]) {
    assert.deepEqual([answer.status, answer.headers['retry-after'], answer.body.code], [503, '5', 'unavailable'])
  }
  const messages = h.logged.filter(line => line.level === 40).map(({ msg }) => msg)
  assert.deepEqual(messages.slice(-2), ['the database is not migrated', 'the database is not migrated'])
})

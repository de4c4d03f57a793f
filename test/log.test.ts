import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { pino } from 'pino'
import { sendCode } from '../src/auth/send-code.ts'
import { logOptions } from '../src/log.ts'
import { MailFailure } from '../src/mail/mailer.ts'
import { startWorkers } from '../src/outbox/workers.ts'
import { harness, INTAKE_KEY, JWT_SECRET } from './support/app.ts'
import { BATCH, cloudEvent, EVENTS } from './support/games.ts'
import { mailChannel, TEXTS } from './support/outbox.ts'
import { queuedCode } from './support/scenario.ts'
import { waitUntil } from './support/wait-until.ts'

const METRICS_TOKEN = 'Qm4tWz7rKx2vNp9s'
const EMAIL = 'zqaddress@zqdomain.example'
const PROFILE = { email: EMAIL, first_name: 'Zqfirst', last_name: 'Zqlast', accept_cgu: true }
const PLACE = 'Zqplace'

const h = harness({ METRICS_TOKEN, LOG_LEVEL: 'trace', CORS_ORIGINS: 'https://app.example.com' })
/**
 * The secrets that must not be in the log. The list omits the names and addresses that this file sends. Each of them
 * contains "zq", so the tests find them in the log by a search for "zq".
 */
const secrets = new Set([INTAKE_KEY, JWT_SECRET, METRICS_TOKEN])

/**
 * Returns the log as text, without its times, durations and ids. These values could contain the four digits of a code
 * by chance.
 */
function logText(): string {
  const lines = h.logged.map(({ time, reqId, session_id, ms, ...line }) => JSON.stringify(line))
  return lines.join('\n').replace(/\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, 'uuid')
}

function assertNoPersonalData(): void {
  const text = logText()
  assert.doesNotMatch(text, /zq/i)
  for (const secret of secrets) {
    const isLogged = /^\d{4}$/.test(secret)
      ? new RegExp(`(?<![\\d:.])${secret}(?!\\d)`).test(text)
      : text.includes(secret)
    assert.ok(!isLogged, `a secret is in the log: ${secret}`)
  }
}

/** Adds a secret to `secrets`. If the secret is a token, also adds its parts. @returns the secret */
function watchFor(secret: string): string {
  secrets.add(secret)
  for (const part of secret.split('.')) if (part.length > 20) secrets.add(part)
  return secret
}

async function requestCode(body: unknown, token?: string) {
  h.clock.advance(60_000)
  return h.call('POST', '/api/v1/auth/request-otp', { body, token })
}

async function verify(code: string) {
  return h.call('POST', '/api/v1/auth/verify-otp', { body: { email: EMAIL, code } })
}

/** Signs a user up and calls the endpoints with valid and invalid input. @returns the user's newest token */
async function callAllEndpoints(): Promise<string> {
  assert.equal((await requestCode(PROFILE)).status, 200)
  const signedUp = await verify(watchFor(await queuedCode(h, EMAIL)))
  assert.equal(signedUp.status, 200)
  const token = watchFor(signedUp.body.access_token)
  const me = await h.call('GET', '/api/v1/auth/me', { token })
  const event = cloudEvent('game_joined', {
    game_id: 7,
    creator_id: me.body.data.id,
    player_ids: [me.body.data.id],
    actor_id: 987_654,
    place: PLACE,
  })
  const reported = await h.call('POST', EVENTS, { token: INTAKE_KEY, body: event })
  assert.deepEqual([reported.status, reported.body.notifications], [202, 1])
  const requests: [string, string, unknown?, string?][] = [
    ['GET', '/api/v1/game-levels?who=zqquery'],
    ['GET', '/api/v1/zqpath/zqaddress%40zqdomain.example'],
    ['GET', '/api/v1/notifications?page=zqpage'],
    ['GET', '/api/v1/notifications/%zq'],
    ['POST', '/api/v1/notifications/zqid/read'],
    ['POST', '/api/v1/notifications/read-all', { ids: ['zqid'] }],
    ['DELETE', '/api/v1/notifications/1zq'],
    ['POST', '/api/v1/auth/level-assessment', { game_level_id: 'zqlevel' }],
    ['POST', '/api/v1/auth/request-otp', { ...PROFILE, email: 'zq@zq@zq' }],
    ['POST', '/api/v1/auth/request-otp', { ...PROFILE, first_name: 'Zq\u0000name', zqkey: 'zq\ud800' }],
    ['POST', '/api/v1/auth/request-otp', PROFILE],
    ['POST', '/api/v1/auth/request-otp', '{"email": "zqbroken'],
    ['POST', '/api/v1/auth/verify-otp', { email: EMAIL, code: 'zqzq' }],
    ['DELETE', '/api/v1/auth/me', { code: '0000' }],
    ['POST', EVENTS, { ...event, data: { ...event.data, place: 'Zqother' } }, INTAKE_KEY],
    ['POST', EVENTS, { id: 'zq', source: 'zq', type: 'zq' }, INTAKE_KEY],
    ['POST', EVENTS, event, 'zq-no-key'],
    ['GET', '/metrics', undefined, METRICS_TOKEN],
    ['GET', `/dev/mailbox.json?key=${h.ctx.mailbox!.key}`],
    ['GET', '/docs'],
    ['GET', '/api/v1/notifications'],
    ['GET', '/api/v1/notifications/unread-count'],
  ]
  for (const [method, url, body, key] of requests) {
    const headers = { origin: 'https://zqorigin.example', 'accept-language': 'zq', 'x-forwarded-for': 'zqproxy' }
    await h.call(method, url, { token: key ?? token, body, headers })
  }
  await h.call('POST', EVENTS, { token: INTAKE_KEY, body: [event, { zq: 1 }], headers: { 'content-type': BATCH } })
  const renewed = await h.call('POST', '/api/v1/auth/refresh', { token })
  watchFor(renewed.body.access_token)
  await h.call('POST', '/api/v1/auth/refresh', { token: `${token}zq` })
  return renewed.body.access_token
}

suite('the log at LOG_LEVEL=trace', () => {
  test('the log contains no personal data after valid and invalid requests to the endpoints', async () => {
    await callAllEndpoints()
    assert.ok(h.logged.some(line => line.msg === 'answered'))
    assertNoPersonalData()
  })

  test('the log contains no personal data after database errors that quote rows and values', async () => {
    const { sql } = h.database
    const token = watchFor(
      (await h.call('POST', '/api/v1/auth/refresh', { token: await signInAgain() })).body.access_token,
    )
    // Each pair contains a statement that damages the database and a statement that repairs it. The damage causes an
    // error that may quote a row in `detail`, a value in the message, or a statement in `where`.
    const breakages: [string, string][] = [
      [
        `alter table app_user add constraint zqless check (last_name <> 'Zqlast') not valid`,
        'alter table app_user drop constraint zqless',
      ],
      [
        `create function zqfail() returns trigger language plpgsql as $$ begin
          raise exception 'no % here', new using detail = 'zqdetail', hint = 'zqhint', errcode = '22P02'; end $$;
        create trigger zqtrigger before update or insert on app_user for each row execute function zqfail()`,
        'drop function zqfail cascade',
      ],
      [
        `create function zqfail() returns trigger language plpgsql as $$ begin
          perform new.first_name::int; return new; end $$;
        create trigger zqtrigger before update or insert on app_user for each row execute function zqfail()`,
        'drop function zqfail cascade',
      ],
      ['alter table app_user rename to app_user_away', 'alter table app_user_away rename to app_user'],
    ]
    for (const [damage, repair] of breakages) {
      const before = h.logged.length
      await sql.pool.query(damage)
      const levels = await h.call('POST', '/api/v1/auth/level-assessment', { token, body: { game_level_id: 1 } })
      await sql.pool.query(repair)
      assert.deepEqual([levels.status, levels.body], [500, { message: 'Server Error', code: 'server_error' }])
      const failed = h.logged.slice(before).find(line => line.msg === 'request failed')
      assert.match((failed!.err as { reason: string }).reason, /^error (23514|22P02|42P01)$/)
    }
    const text = logText()
      .replaceAll('"constraint":"zqless"', '')
      .replaceAll(/zqfail|zqtrigger/g, '')
    assert.doesNotMatch(text, /zq/i)
    h.logged.length = 0
  })

  test('the log of a worker contains no personal data after a sent mail, a rejected mail and a failed attempt', async () => {
    const failures = [new Error(`<${EMAIL}> 550 zq`), new MailFailure('EENVELOPE RCPT TO 550', true), undefined]
    const mailer = {
      async compose() {},
      async send() {
        const failure = failures.shift()
        if (failure) throw failure
      },
    }
    const log = pino(logOptions('trace'), { write: (line: string) => h.logged.push(JSON.parse(line)) })
    const { sql, keys, now } = h.ctx
    await h.database.sql`delete from outbox`
    const channel = mailChannel(sendCode({ sql, mailer, keys, now, log, texts: TEXTS }))
    const worker = startWorkers(h.database.url, [channel], { log, now, observe: () => {} })
    for (const email of [EMAIL, 'zqother@zqdomain.example', 'zqthird@zqdomain.example'])
      await requestCode({ ...PROFILE, email })
    // The failed attempt is repeated after 3 s.
    await waitUntil(() => {
      h.clock.advance(10)
      return failures.length === 0
    })
    await worker.stop()
    assert.ok(h.logged.some(line => String(line.msg).includes('will be tried again')))
    assertNoPersonalData()
  })
})

/** Signs in again as the user with the address `EMAIL`. @returns a new token */
async function signInAgain(): Promise<string> {
  await requestCode({ email: EMAIL })
  return watchFor((await verify(watchFor(await queuedCode(h, EMAIL)))).body.access_token)
}

import assert from 'node:assert/strict'
import { beforeEach, suite, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { findRetryClass, MAIL_CLASSES } from '../src/limits/mail-backlog.ts'
import { harness } from './support/app.ts'
import { assertError } from './support/endpoints.ts'
import { listenForHints } from './support/hints.ts'
import { METRICS_TOKEN, scrape } from './support/metrics.ts'
import { newEmail, profile, signUp } from './support/scenario.ts'
import { waitUntil } from './support/wait-until.ts'

const h = harness({ METRICS_TOKEN })

const KNOWN_CLIENT = 1
const ACCOUNT = 2
const SIGN_UP = 3

function requestCode(body: unknown, token?: string) {
  return h.call('POST', '/api/v1/auth/request-otp', { body, token })
}

/** Adds mails that have waited for `seconds`. Each network in `networks` has asked for one of them. */
async function addWaiting(mailClass: number, networks: number[], seconds = 11) {
  const since = new Date(h.clock.now().getTime() - seconds * 1_000)
  await h.database.sql`
    insert into outbox (channel, class, network, created_at, due, payload)
    select 'mail', ${mailClass}, int4send(network), ${since}, ${since}, '{}' from unnest(${networks}::int[]) as network`
  await h.ctx.mailBacklog.poll()
}

/** Adds `perSecond` first attempts to each of the last 10 s. */
async function addAttempts(perSecond: number) {
  await h.database.sql`
    insert into outbox_attempt (second, count)
    select extract(epoch from clock_timestamp())::bigint - n, ${perSecond} from generate_series(0, 9) as n`
}

const range = (count: number) => Array.from({ length: count }, (_, index) => index)

suite('a backlog of mails', () => {
  const hints = listenForHints(h)

  beforeEach(async () => {
    await h.database.sql`delete from outbox`
    await h.database.sql`delete from outbox_attempt`
    await h.ctx.mailBacklog.poll()
  })

  test('if sign-ups wait and no worker attempts a mail, a sign-up gets a 503, and a sign-in gets a 200', async () => {
    await addWaiting(SIGN_UP, [1])
    const refused = await requestCode(profile(newEmail()))
    assertError(refused, 503, 'unavailable')
    assert.equal(refused.headers['retry-after'], '30')
    const warnings = h.logged.filter(line => line.level === 40)
    assert.deepEqual(
      warnings.map(({ msg }) => msg),
      ['too many mails wait in the outbox'],
    )
    assert.equal((await requestCode({ email: newEmail() })).status, 200)
  })

  test('a refused request sends no hint, because it has written nothing', async () => {
    await addWaiting(SIGN_UP, [1])
    hints.payloads.length = 0
    assertError(await requestCode(profile(newEmail())), 503, 'unavailable')
    // A hint is sent some milliseconds after the answer.
    await delay(200)
    await hints.settle()
    assert.deepEqual(hints.payloads, [])
  })

  test('if mails to accounts wait, sign-ins and sign-ups get a 503, but a known client gets a 200', async () => {
    const known = await signUp(h)
    h.clock.advance(60_000)
    await addWaiting(ACCOUNT, [1])
    for (const email of [newEmail(), known.email]) {
      for (const body of [{ email }, profile(email)]) assertError(await requestCode(body), 503, 'unavailable')
    }
    assert.equal((await requestCode({ email: 'no address' })).status, 422)
    assert.equal((await requestCode({ email: known.email }, known.token)).status, 200)
  })

  test('a class is not refused before a mail has waited for 10 s', async () => {
    await addWaiting(SIGN_UP, range(100), 9)
    assert.equal((await requestCode(profile(newEmail()))).status, 200)
  })

  test('with one attempt a second, sign-ups are refused if more than 60 networks wait', async () => {
    await addAttempts(1)
    await addWaiting(SIGN_UP, range(54))
    assert.equal((await requestCode(profile(newEmail()))).status, 200)
    await addWaiting(SIGN_UP, range(70))
    assertError(await requestCode(profile(newEmail())), 503, 'unavailable')
    await h.database.sql`update outbox_attempt set count = 10`
    await h.ctx.mailBacklog.poll()
    assert.equal((await requestCode(profile(newEmail()))).status, 200)
  })

  test('the process that attempts mails counts them for all processes', async () => {
    h.ctx.mailBacklog.countAttempt()
    h.ctx.mailBacklog.countAttempt()
    h.ctx.mailBacklog.start()
    const count = async () => (await h.database.sql<{ count: number }>`select count from outbox_attempt`)[0]?.count
    await waitUntil(async () => (await count()) === 2)
    await h.ctx.mailBacklog.stop()
  })

  test('a thousand mails of one network do not delay other networks, so no request is refused', async () => {
    await addAttempts(1)
    await addWaiting(
      SIGN_UP,
      range(1_000).map(() => 7),
    )
    assert.equal((await requestCode(profile(newEmail()))).status, 200)
  })

  test('all mails of earlier classes count for the wait, even if all of them come from one network', async () => {
    await addAttempts(1)
    const crowd = (mailClass: number) =>
      addWaiting(
        mailClass,
        range(70).map(() => 7),
      )
    await crowd(ACCOUNT)
    assert.equal((await requestCode({ email: newEmail() })).status, 200)
    assertError(await requestCode(profile(newEmail())), 503, 'unavailable')
    await crowd(KNOWN_CLIENT)
    assertError(await requestCode({ email: newEmail() }), 503, 'unavailable')
  })

  test('mails about unread notifications change no wait, and keep their class after a failure', async () => {
    await addAttempts(1)
    for (const mailClass of [MAIL_CLASSES.urgentDigest, MAIL_CLASSES.digest]) {
      await addWaiting(mailClass, range(1_000))
      assert.equal(findRetryClass(mailClass), mailClass)
    }
    assert.equal((await requestCode({ email: newEmail() })).status, 200)
    assert.equal((await requestCode(profile(newEmail()))).status, 200)
  })

  test('a refused request counts in the throttle and in the metrics', async () => {
    await addWaiting(ACCOUNT, [1])
    const before = (await scrape(h)).get('courtside_mail_backlog_refusals_total{class="account"}') ?? 0
    const [first, second] = [await requestCode({ email: newEmail() }), await requestCode({ email: newEmail() })]
    const remaining = [first, second].map(answer => Number(answer.headers['x-ratelimit-remaining']))
    assert.equal(remaining[0]! - remaining[1]!, 1)
    const after = (await scrape(h)).get('courtside_mail_backlog_refusals_total{class="account"}')!
    assert.equal(after - before, 2)
  })
})

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { suite, test } from 'node:test'
import { createMetrics } from '../src/metrics/metrics.ts'
import { anotherApp, harness } from './support/app.ts'
import { cloudEvent, makeFourPlayers, makePlayer, newGameId, send, sendBatch } from './support/games.ts'
import { newEmail, otherThan, queuedCode, signUp } from './support/scenario.ts'

const METRICS_TOKEN = 'Qm4tWz7rKx2vNp9s'

/** Parses the text format. @returns the values by name and labels */
function parseSamples(text: string): Map<string, number> {
  const lines = text.split('\n').filter(line => line !== '' && !line.startsWith('#'))
  return new Map(
    lines.map(line => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
  )
}

async function scrape() {
  const answer = await h.call('GET', '/metrics', { token: METRICS_TOKEN })
  assert.equal(answer.status, 200, answer.text)
  return parseSamples(answer.text)
}

/** Returns by how much `work` increases our counters. */
async function measureIncreases(work: () => Promise<unknown>): Promise<Record<string, number>> {
  const before = await scrape()
  await work()
  const after = await scrape()
  const counters = [...after].filter(
    ([name]) => /^courtside_\w+_(total|count)\b/.test(name) && !name.includes('/metrics'),
  )
  return Object.fromEntries(
    counters.map(([name, value]) => [name, value - (before.get(name) ?? 0)] as const).filter(([, more]) => more !== 0),
  )
}

const h = harness({ METRICS_TOKEN, TRUST_PROXY: '10.0.0.0/8', THROTTLE_VERIFY_OTP: '3' })

/** Returns the answer of another process to `GET /metrics`. */
async function scrapeOther(env: Record<string, string>, databaseUrl?: string) {
  const other = await anotherApp(h, env, databaseUrl)
  return other.call('GET', '/metrics', { token: METRICS_TOKEN }).finally(other.close)
}

suite('GET /metrics', () => {
  test('/metrics answers 404 like an unknown path when METRICS_TOKEN is unset', async () => {
    const answer = await scrapeOther({})
    assert.deepEqual([answer.status, answer.text], [404, (await h.call('GET', '/nothing')).text])
  })

  test('/metrics answers 401 without the token and with any other', async () => {
    const { token } = await signUp(h)
    for (const sent of [undefined, 'x', `${METRICS_TOKEN}x`, METRICS_TOKEN.slice(0, -1), token]) {
      const answer = await h.call('GET', '/metrics', { token: sent })
      assert.deepEqual([answer.status, answer.body.code], [401, 'unauthenticated'])
    }
  })

  test('/metrics answers 200 in the text format with no-store', async () => {
    const answer = await h.call('GET', '/metrics', { token: METRICS_TOKEN })
    assert.equal(answer.headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8')
    assert.equal(answer.headers['cache-control'], 'no-store')
    assert.match(answer.text, /^# TYPE courtside_http_requests_total counter$/m)
    assert.match(answer.text, /^process_resident_memory_bytes \d+$/m)
    assert.match(answer.text, /^nodejs_eventloop_lag_p99_seconds /m)
  })

  test('requests are counted by the pattern of their route and by status, never by path', async () => {
    const { token } = await signUp(h)
    const more = await measureIncreases(async () => {
      await h.call('POST', '/api/v1/notifications/4711/read', { token })
      await h.call('GET', '/api/v1/game-levels')
      await h.call('GET', '/nobody/4711')
      await h.call('PROPFIND', '/nobody/4712')
      await h.call('POST', `/api/v1/notifications/${'9'.repeat(200)}/read`)
    })
    assert.deepEqual(more, {
      'courtside_http_requests_total{method="POST",route="/api/v1/notifications/:id/read",status="404"}': 1,
      'courtside_http_requests_total{method="GET",route="/api/v1/game-levels",status="200"}': 1,
      'courtside_http_requests_total{method="GET",route="unknown",status="404"}': 1,
      'courtside_http_requests_total{method="POST",route="unknown",status="404"}': 1,
      'courtside_http_requests_total{method="other",route="unknown",status="404"}': 1,
      'courtside_http_request_duration_seconds_count{method="POST",route="/api/v1/notifications/:id/read"}': 1,
      'courtside_http_request_duration_seconds_count{method="GET",route="/api/v1/game-levels"}': 1,
      'courtside_http_request_duration_seconds_count{method="GET",route="unknown"}': 1,
      'courtside_http_request_duration_seconds_count{method="POST",route="unknown"}': 1,
      'courtside_http_request_duration_seconds_count{method="other",route="unknown"}': 1,
      'courtside_refusals_total{route="/api/v1/notifications/:id/read",code="not_found"}': 1,
      'courtside_refusals_total{route="unknown",code="not_found"}': 3,
    })
  })

  test('codes are counted as sent, spent, failed or decoy, and throttled requests as refusals', async () => {
    const email = newEmail()
    const proxied = { 'x-forwarded-for': '192.0.2.7' }
    const verify = (code: string) =>
      h.call('POST', '/api/v1/auth/verify-otp', { body: { email, code }, headers: proxied, remoteAddress: '10.1.1.1' })
    const more = await measureIncreases(async () => {
      const body = { email, first_name: 'Marie', last_name: 'Durand', accept_cgu: true }
      await h.call('POST', '/api/v1/auth/request-otp', { body })
      await h.call('POST', '/api/v1/auth/request-otp', { body: { email: newEmail() } })
      const code = await queuedCode(h, email)
      assert.equal((await verify(otherThan(code))).status, 422)
      assert.equal((await verify(code)).status, 200)
      assert.equal((await verify(code)).status, 422)
      assert.equal((await verify(code)).status, 429)
    })
    const route = '/api/v1/auth/verify-otp'
    const codes = Object.entries(more).filter(([name]) => /codes_total|refusals_total/.test(name))
    assert.deepEqual(Object.fromEntries(codes), {
      'courtside_codes_total{outcome="sent"}': 1,
      'courtside_codes_total{outcome="decoy"}': 1,
      'courtside_codes_total{outcome="spent"}': 1,
      'courtside_codes_total{outcome="failed"}': 2,
      [`courtside_refusals_total{route="${route}",code="otp_invalid"}`]: 2,
      [`courtside_refusals_total{route="${route}",code="throttled"}`]: 1,
    })
  })

  test('events are counted by type and outcome, and unknown recipients as skipped', async () => {
    const [anna, bob] = await makeFourPlayers(h)
    const events = [anna, bob].map(actor_id =>
      cloudEvent('game_joined', { game_id: newGameId(), creator_id: anna, player_ids: [anna, bob, 987_654], actor_id }),
    )
    const more = await measureIncreases(async () => {
      await send(h, events[0])
      await sendBatch(h, [
        events[0],
        events[1],
        { ...events[1], data: events[0]!.data },
        { id: 'x', type: 'zq_unheard_of' },
      ])
      await send(h, { type: 'zq_unheard_of' })
    })
    const eventCounters = Object.entries(more).filter(([name]) => /events_total|skipped/.test(name))
    assert.deepEqual(Object.fromEntries(eventCounters), {
      'courtside_events_total{type="game_joined",outcome="accepted"}': 2,
      'courtside_events_total{type="game_joined",outcome="duplicate"}': 1,
      'courtside_events_total{type="game_joined",outcome="mismatch"}': 1,
      'courtside_events_total{type="unknown",outcome="rejected"}': 2,
      courtside_recipients_skipped_total: 2,
    })
  })

  test('a request that the HTTP parser rejects is counted with status 400', async () => {
    const address = await h.app.listen({ host: '127.0.0.1', port: 0 })
    const more = await measureIncreases(async () => {
      const socket = connect(Number(new URL(address).port), '127.0.0.1').resume()
      socket.write('NOT HTTP AT ALL\r\n\r\n')
      await once(socket, 'close')
    })
    assert.equal(more['courtside_http_requests_total{method="other",route="unknown",status="400"}'], 1)
    assert.equal(more['courtside_refusals_total{route="unknown",code="validation_failed"}'], 1)
  })

  test('forwarded headers from peers outside TRUST_PROXY are counted', async () => {
    const more = await measureIncreases(async () => {
      await h.call('GET', '/healthz', { headers: { 'x-forwarded-for': '192.0.2.1' } })
      await h.call('GET', '/healthz', { headers: { 'x-forwarded-for': '192.0.2.1' }, remoteAddress: '10.1.1.1' })
    })
    assert.equal(more.courtside_undeclared_forwarded_total, 1)
  })

  test('the number of waiting mails, the age of the oldest and the pools are exposed', async () => {
    const { sql } = h.database
    await sql`delete from graphile_worker._private_jobs`
    const empty = await scrape()
    assert.deepEqual([empty.get('courtside_mails_waiting'), empty.get('courtside_mails_oldest_seconds')], [0, 0])

    await sql`select graphile_worker.add_job(name) from unnest(array['send_code', 'send_code', 'other']) as name`
    await sql`update graphile_worker._private_jobs set created_at = now() - interval '90 seconds' where id = (
      select min(id) from graphile_worker._private_jobs)`
    const waiting = await scrape()
    assert.equal(waiting.get('courtside_mails_waiting'), 2)
    const oldest = waiting.get('courtside_mails_oldest_seconds')!
    assert.ok(oldest >= 90 && oldest < 120, String(oldest))
    assert.equal(waiting.get('courtside_database_up'), 1)
    assert.ok(waiting.get('courtside_pool_connections{pool="requests",state="total"}')! >= 1)
    assert.ok(waiting.has('courtside_pool_connections{pool="intake",state="total"}'))
    assert.ok(waiting.has('courtside_pool_connections{pool="reads",state="idle"}'))
    assert.equal(waiting.get('courtside_pool_connections{pool="requests",state="waiting"}'), 0)
  })

  test('the number of overdue reminders and the age of the oldest are exposed', async () => {
    const [anna, bob] = await makeFourPlayers(h)
    const readOverdue = async () => {
      const now = await scrape()
      return [now.get('courtside_reminders_overdue'), now.get('courtside_reminders_overdue_oldest_seconds')]
    }
    assert.deepEqual(await readOverdue(), [0, 0])
    const starts_at = new Date(h.clock.now().getTime() + 3 * 3_600_000).toISOString()
    await send(
      h,
      cloudEvent('game_created', { game_id: newGameId(), creator_id: anna, player_ids: [anna, bob], starts_at }),
    )
    h.clock.advance(3_600_000 + 30_000)
    // No worker runs here, so the reminder of two hours before the game waits.
    assert.deepEqual(await readOverdue(), [1, 30])
  })

  test('/metrics answers while the database is down, without the outbox and the schedule', async () => {
    // No server listens on this port.
    const answer = await scrapeOther({ METRICS_TOKEN }, 'postgres://nobody@127.0.0.1:9/nothing')
    assert.equal(answer.status, 200)
    const now = parseSamples(answer.text)
    assert.equal(now.get('courtside_database_up'), 0)
    assert.ok(![...now.keys()].some(name => /mails_waiting|mails_oldest|overdue/.test(name)))
  })

  test('/metrics contains no id, name or e-mail of an account', async () => {
    const email = 'zqmark@example.com'
    const id = await makePlayer(h, 'Zqname')
    await signUp(h, email)
    const { text } = await h.call('GET', '/metrics', { token: METRICS_TOKEN })
    assert.doesNotMatch(text, /zqmark|Zqname|zq_unheard_of|4711|192\.0\.2|example\.com/)
    assert.ok(!text.includes(`"${id}"`))
  })
})

const IDLE = { total: 0, idle: 0, waiting: 0 }
const NO_DATA = { pools: { requests: IDLE, reads: IDLE, intake: IDLE }, queues: undefined }

suite('createMetrics', () => {
  test('each instance counts reminders with their lateness and open streams for itself', async () => {
    const [one, other] = [createMetrics(), createMetrics()]
    one.metrics.fired('game_reminder', 'told', 0.7)
    one.metrics.fired('game_started', 'dropped', 1000)
    for (const change of [1, 1, -1] as const) one.metrics.stream(change)
    const now = parseSamples((await one.expose(NO_DATA)).text)
    assert.equal(now.get('courtside_reminders_total{type="game_reminder",outcome="told"}'), 1)
    assert.equal(now.get('courtside_reminder_lateness_seconds_bucket{le="0.5",type="game_reminder"}'), 0)
    assert.equal(now.get('courtside_reminder_lateness_seconds_bucket{le="1",type="game_reminder"}'), 1)
    assert.equal(now.get('courtside_reminder_lateness_seconds_sum{type="game_started"}'), 1000)
    assert.equal(now.get('courtside_streams_open'), 1)
    assert.equal(parseSamples((await other.expose(NO_DATA)).text).get('courtside_streams_open'), 0)
  })

  test('docs/operations.md lists each metric', async () => {
    const text = await readFile(new URL('../docs/operations.md', import.meta.url), 'utf8')
    const { expose } = createMetrics()
    const exposed = (await expose(NO_DATA)).text
    const names = [...exposed.matchAll(/^# TYPE (courtside_\w+) /gm)].map(([, name]) => name!)
    assert.ok(names.length > 10)
    for (const name of names) assert.ok(text.includes(`| \`${name}\` |`), `${name} is missing`)
  })
})

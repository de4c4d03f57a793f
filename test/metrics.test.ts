import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { suite, test } from 'node:test'
import { harness } from './support/app.ts'
import { cloudEvent, makeFourPlayers, makePlayer, newGameId, send, sendBatch } from './support/games.ts'
import { METRICS_TOKEN, scrape, scrapeOther } from './support/metrics.ts'
import { newEmail, otherThan, queuedCode, signUp } from './support/scenario.ts'

const h = harness({ METRICS_TOKEN, TRUST_PROXY: '10.0.0.0/8', THROTTLE_VERIFY_OTP: '3' })

/** Returns the increase of each `courtside_` counter during `work`. Requests to `/metrics` are left out. */
async function measureIncreases(work: () => Promise<unknown>): Promise<Record<string, number>> {
  const before = await scrape(h)
  await work()
  const after = await scrape(h)
  const counters = [...after].filter(
    ([name]) => /^courtside_\w+_(total|count)\b/.test(name) && !name.includes('/metrics'),
  )
  return Object.fromEntries(
    counters.map(([name, value]) => [name, value - (before.get(name) ?? 0)] as const).filter(([, more]) => more !== 0),
  )
}

suite('GET /metrics', () => {
  test('/metrics answers 404, like an unknown path, if METRICS_TOKEN is unset', async () => {
    const answer = await scrapeOther(h, {})
    assert.deepEqual([answer.status, answer.text], [404, (await h.call('GET', '/nothing')).text])
  })

  test('/metrics answers 401 if the token is missing or wrong', async () => {
    const { token } = await signUp(h)
    for (const sent of [undefined, 'x', `${METRICS_TOKEN}x`, METRICS_TOKEN.slice(0, -1), token]) {
      const answer = await h.call('GET', '/metrics', { token: sent })
      assert.deepEqual([answer.status, answer.body.code], [401, 'unauthenticated'])
    }
  })

  test('/metrics answers in the text format of Prometheus with cache-control: no-store', async () => {
    const answer = await h.call('GET', '/metrics', { token: METRICS_TOKEN })
    assert.equal(answer.headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8')
    assert.equal(answer.headers['cache-control'], 'no-store')
    assert.match(answer.text, /^# TYPE courtside_http_requests_total counter$/m)
    assert.match(answer.text, /^process_resident_memory_bytes \d+$/m)
    assert.match(answer.text, /^nodejs_eventloop_lag_p99_seconds /m)
  })

  test('requests are counted by method, route pattern and status, not by path', async () => {
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

  test('sign-in codes are counted as sent, spent, failed or decoy, and throttled requests are counted as refusals', async () => {
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

  test('events are counted by type and outcome, and recipients without an account are counted as skipped', async () => {
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
        { ...events[1], time: '2999-01-01T00:00:00Z' },
      ])
      await send(h, { type: 'zq_unheard_of' })
    })
    const eventCounters = Object.entries(more).filter(([name]) => /events_total|skipped/.test(name))
    assert.deepEqual(Object.fromEntries(eventCounters), {
      'courtside_events_total{type="game_joined",outcome="accepted"}': 2,
      'courtside_events_total{type="game_joined",outcome="duplicate"}': 1,
      'courtside_events_total{type="game_joined",outcome="mismatch"}': 1,
      'courtside_events_total{type="unknown",outcome="rejected"}': 2,
      'courtside_events_total{type="unknown",outcome="ahead"}': 1,
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

  test('requests with a forwarding header from an address outside TRUST_PROXY are counted', async () => {
    const more = await measureIncreases(async () => {
      await h.call('GET', '/healthz', { headers: { 'x-forwarded-for': '192.0.2.1' } })
      await h.call('GET', '/healthz', { headers: { 'x-forwarded-for': '192.0.2.1' }, remoteAddress: '10.1.1.1' })
    })
    assert.equal(more.courtside_undeclared_forwarded_total, 1)
  })

  test('/metrics contains no id, name or e-mail address of an account', async () => {
    const email = 'zqmark@example.com'
    const id = await makePlayer(h, 'Zqname')
    await signUp(h, email)
    const { text } = await h.call('GET', '/metrics', { token: METRICS_TOKEN })
    assert.doesNotMatch(text, /zqmark|Zqname|zq_unheard_of|4711|192\.0\.2|example\.com/)
    assert.ok(!text.includes(`"${id}"`))
  })
})

import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { before, describe, type TestContext, test } from 'node:test'
import { CourtsideError, type GameEvent, Reporter } from 'courtside-client/server'
import { harness, INTAKE_KEY } from './support/app.ts'
import { startServer } from './support/client.ts'
import { listen } from './support/event-stream.ts'
import { makeFourPlayers, newGameId, readTypes } from './support/games.ts'

const STARTS_AT = '2027-01-16T18:00:00+01:00'
const TIME = '2026-11-28T09:00:00Z'

const h = harness()
let url: string

function joined(
  gameId: number,
  [creator_id, actor_id]: number[],
  envelope: { id?: string; time?: string } = {},
): GameEvent {
  const player_ids = [creator_id!, actor_id!]
  const data = { game_id: gameId, creator_id: creator_id!, player_ids, actor_id: actor_id!, starts_at: STARTS_AT }
  return { type: 'game_joined', data, ...envelope }
}

type Received = { type: string; body: string }
type Reply = { status: number; body?: unknown; text?: string; headers?: Record<string, string> }
type Answer = (received: Received, nth: number) => Reply

/** Starts a server that imitates the intake. The server records each request and sends the result of `answer`. */
async function startIntake(t: TestContext, answer: Answer) {
  const received: Received[] = []
  const server = await startServer(async (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    received.push({ type: request.headers['content-type']!, body: Buffer.concat(chunks).toString() })
    const { status, body, text, headers } = answer(received.at(-1)!, received.length)
    if (status === 0) return void response.destroy()
    response.writeHead(status, headers).end(text ?? JSON.stringify(body ?? { message: 'No', code: 'unavailable' }))
  })
  t.after(server.close)
  return { received, reporter: new Reporter({ url: server.url, key: INTAKE_KEY, source: '/games', attempts: 4 }) }
}

function accepted({ body }: Received) {
  const events: { id: string }[] = [JSON.parse(body)].flat()
  const results = events.map(({ id }) => ({ id, status: 'accepted', notifications: 1 }))
  return body.startsWith('[') ? { status: 200, body: { results } } : { status: 202, body: results[0] }
}

describe('the reporter', { timeout: 60_000 }, () => {
  before(async () => {
    url = await listen(h.app)
  })
  const createReporter = () => new Reporter({ url, key: INTAKE_KEY, source: '/games', language: 'en' })

  test('report returns the result of a single event, and a repeat of the event has no effect', async () => {
    const [anna, bob] = await makeFourPlayers(h)
    const event = joined(newGameId(), [anna, bob], { id: 'join-1', time: TIME })
    assert.deepEqual(await createReporter().report(event), { id: 'join-1', status: 'accepted', notifications: 1 })
    assert.deepEqual(await createReporter().report(event), { id: 'join-1', status: 'duplicate', notifications: 1 })
    assert.deepEqual(await readTypes(h, anna, bob), [['game_joined'], []])
  })

  test('report adds an id and a time to an event that has neither', async () => {
    const { id, status } = await createReporter().report(joined(newGameId(), await makeFourPlayers(h)))
    assert.match(id, /^[0-9a-f-]{36}$/)
    assert.equal(status, 'accepted')
  })

  test('the service accepts events of all types from the reporter', async () => {
    const [creator_id, actor_id, ...rest] = await makeFourPlayers(h)
    const state = { game_id: newGameId(), creator_id, player_ids: [creator_id, actor_id, ...rest], place: 'Court 2' }
    const events: GameEvent[] = [
      { type: 'game_created', data: { ...state, player_ids: [creator_id], starts_at: STARTS_AT } },
      { type: 'game_joined', data: { ...state, actor_id, starts_at: STARTS_AT } },
      { type: 'game_left', data: { ...state, actor_id: 99, by_id: creator_id, starts_at: STARTS_AT } },
      { type: 'game_updated', data: { ...state, starts_at: STARTS_AT } },
      { type: 'game_full', data: { ...state, starts_at: STARTS_AT } },
      { type: 'game_reminder', data: { ...state, starts_at: STARTS_AT } },
      { type: 'game_started', data: { ...state, starts_at: STARTS_AT } },
      { type: 'score_submitted', data: { ...state, actor_id, score: { id: 3, sets: '6-4 6-3' } } },
      { type: 'score_validated', data: { ...state, actor_id, score: { id: 3, sets: '6-4 6-3' } } },
      { type: 'score_contested', data: { ...state, actor_id, score: { id: 3, sets: '6-4 6-3' } } },
      { type: 'score_finalized', data: { ...state, score: { id: 3, sets: '6-4 6-3' } } },
      { type: 'game_cancelled', data: { ...state, actor_id: creator_id, starts_at: STARTS_AT }, time: new Date() },
    ]
    const results = await createReporter().report(events)
    assert.deepEqual(new Set(results.map(({ status }) => status)), new Set(['accepted']))
    assert.equal(results.length, events.length)
  })

  test('report returns one result for each event of an array, and an invalid event does not affect the others', async () => {
    const [anna, bob] = await makeFourPlayers(h)
    const game = newGameId()
    const bad = joined(game, [anna, bob], { id: 'bad', time: 'yesterday' })
    const results = await createReporter().report([
      joined(game, [anna, bob], { id: 'good-1', time: TIME }),
      bad,
      joined(newGameId(), [anna, bob], { id: 'good-2', time: TIME }),
    ])
    assert.deepEqual(
      results.map(({ id, status }) => [id, status]),
      [
        ['good-1', 'accepted'],
        ['bad', 'rejected'],
        ['good-2', 'accepted'],
      ],
    )
    const [, refused] = results
    assert.ok(refused?.status === 'rejected')
    assert.deepEqual(Object.keys(refused.errors!), ['time'])
    assert.match(refused.message, /RFC 3339/)

    await assert.rejects(createReporter().report(bad), (error: CourtsideError) => {
      assert.deepEqual([error.status, error.code], [422, 'validation_failed'])
      return true
    })
  })

  test('a report with a wrong intake key fails with 401, and the reporter does not repeat the request', async () => {
    let requests = 0
    const countingFetch: typeof fetch = (input, init) => {
      requests += 1
      return fetch(input, init)
    }
    const reporter = new Reporter({ url, key: 'x'.repeat(32), source: '/games', fetch: countingFetch })
    await assert.rejects(reporter.report(joined(newGameId(), [1, 2])), { status: 401, code: 'unauthenticated' })
    assert.equal(requests, 1)
  })

  test('the reporter sends 205 events in batches, and the service accepts all of them', async () => {
    const [anna, bob] = await makeFourPlayers(h)
    const events = Array.from({ length: 205 }, () => joined(newGameId(), [anna, bob], { time: TIME }))
    const results = await createReporter().report(events)
    assert.equal(results.length, 205)
    assert.ok(results.every(({ status }) => status === 'accepted'))
    assert.equal((await readTypes(h, anna))[0]!.length, 205)
  })

  test('an answer of a proxy that is no JSON is followed by another attempt, if its status says success', async t => {
    const { received, reporter } = await startIntake(t, (request, nth) =>
      nth === 1 ? { status: 200, text: '<html>Welcome</html>' } : accepted(request),
    )
    const { status } = await reporter.report(joined(newGameId(), [1, 2]))
    assert.deepEqual([status, received.length], ['accepted', 2])
  })

  test('a report of an empty array sends no request', async t => {
    const { reporter, received } = await startIntake(t, accepted)
    assert.deepEqual(await reporter.report([]), [])
    assert.deepEqual(received, [])
  })

  test('the reporter sends events in order, in batches of at most 1 MiB', async t => {
    const { reporter, received } = await startIntake(t, accepted)
    // The field `place` of each event takes 60,000 bytes. 17 events therefore fit into a batch of at most 1 MiB, and 18
    // events do not.
    const place = 'é'.repeat(30_000)
    const events = Array.from({ length: 40 }, (_, index): GameEvent => {
      const data = { game_id: index, creator_id: 1, player_ids: [1], starts_at: STARTS_AT, place }
      return { type: 'game_created', id: `event-${index}`, data }
    })
    const results = await reporter.report(events)
    assert.deepEqual(
      results.map(({ id }) => id),
      events.map(({ id }) => id),
    )
    assert.deepEqual(
      received.map(({ body }) => JSON.parse(body).length),
      [17, 17, 6],
    )
    for (const { body, type } of received) {
      assert.ok(Buffer.byteLength(body) <= 1024 * 1024)
      assert.equal(type, 'application/cloudevents-batch+json')
    }
  })

  const transient: [failure: string, answer: ReturnType<Answer>][] = [
    ['a broken connection', { status: 0 }],
    ['a page from a proxy', { status: 511, body: 'Log in to the network' }],
    ['a 503', { status: 503 }],
    ['a 500', { status: 500, body: { message: 'Server Error', code: 'server_error' } }],
    ['a 429 with Retry-After', { status: 429, headers: { 'retry-after': '0' } }],
  ]
  for (const [name, failure] of transient) {
    test(`after ${name} the reporter sends the same bytes again`, async t => {
      const { reporter, received } = await startIntake(t, (request, nth) => (nth < 3 ? failure : accepted(request)))
      assert.equal((await reporter.report(joined(newGameId(), [1, 2]))).status, 'accepted')
      assert.equal(received.length, 3)
      assert.equal(new Set(received.map(({ body }) => body)).size, 1, 'id and time are created only once')
    })
  }

  test('if all attempts fail, report throws an error, and a later report of the same event can succeed', async t => {
    const { reporter, received } = await startIntake(t, (request, nth) =>
      nth < 5 ? { status: 503 } : accepted(request),
    )
    const event = reporter.name(joined(newGameId(), [1, 2]))
    await assert.rejects(reporter.report(event), { status: 503, code: 'unavailable' })
    assert.equal(received.length, 4)
    assert.equal((await reporter.report(event)).id, event.id)
    assert.equal(new Set(received.map(({ body }) => body)).size, 1)
  })

  const AHEAD = {
    message: 'The time field is more than 5 minutes ahead.',
    code: 'validation_failed',
    errors: { time: ['x'] },
  }
  const refuseTime = ({ body }: Received) => {
    if (!body.startsWith('[')) return { status: 422, body: AHEAD }
    const results = JSON.parse(body).map(({ id }: { id: string }, index: number) =>
      index === 0 ? { id, status: 'accepted', notifications: 1 } : { id, status: 'rejected', ...AHEAD },
    )
    return { status: 200, body: { results } }
  }

  test('while the clock of the service is behind, the reporter repeats an event and a batch', async t => {
    const { reporter, received } = await startIntake(t, (request, nth) =>
      nth % 2 === 1 ? refuseTime(request) : accepted(request),
    )
    const event = joined(newGameId(), [1, 2])
    assert.equal((await reporter.report(event)).status, 'accepted')
    const results = await reporter.report([event, event])
    assert.deepEqual(new Set(results.map(({ status }) => status)), new Set(['accepted']))
    assert.equal(received.length, 4)
    assert.equal(new Set(received.map(({ body }) => body)).size, 2)
  })

  test('if the clock of the service stays behind, report throws an error with the code unavailable', async t => {
    const { reporter, received } = await startIntake(t, refuseTime)
    const event = joined(newGameId(), [1, 2])
    await assert.rejects(reporter.report(event), { status: 422, code: 'unavailable', errors: { time: ['x'] } })
    await assert.rejects(reporter.report([event, event]), { status: 422, code: 'unavailable' })
    assert.equal(received.length, 8)
  })

  test('the reporter does not repeat an event with a malformed time', async t => {
    const { reporter, received } = await startIntake(t, refuseTime)
    for (const time of ['yesterday', '2026-11-28T09:00:00', '2026-13-28T09:00:00Z']) {
      const event = joined(newGameId(), [1, 2], { time })
      await assert.rejects(reporter.report(event), { status: 422, code: 'validation_failed' })
      assert.equal((await reporter.report([event, event]))[1]!.status, 'rejected')
    }
    assert.equal(received.length, 6)
  })

  test('if the caller aborts a report, the reporter makes no further attempt', async t => {
    const aborter = new AbortController()
    const { reporter, received } = await startIntake(t, () => {
      aborter.abort()
      return { status: 503, headers: { 'retry-after': '3600' } }
    })
    await assert.rejects(reporter.report(joined(newGameId(), [1, 2]), { signal: aborter.signal }), CourtsideError)
    assert.equal(received.length, 1)
  })
})

// Reports events about a game, as a games service does. The program sends a single event, then a batch of two events.
//
//   node report.mjs GAME_ID CREATOR_ID PLAYER_ID
//
// COURTSIDE_URL is the address of the service. COURTSIDE_INTAKE_KEY is one of the intake keys of the service.
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'

const url = process.env.COURTSIDE_URL ?? 'http://127.0.0.1:3000'
const key = process.env.COURTSIDE_INTAKE_KEY
const [gameId, creatorId, playerId] = process.argv.slice(2).map(Number)
if (!key || playerId === undefined) {
  console.error('usage: COURTSIDE_INTAKE_KEY=… node report.mjs GAME_ID CREATOR_ID PLAYER_ID')
  process.exit(1)
}

// `data` contains the whole state of the game after the event, so the service does not depend on earlier events.
const game = {
  game_id: gameId,
  creator_id: creatorId,
  player_ids: [creatorId, playerId],
  starts_at: new Date(Date.now() + 3 * 86_400_000).toISOString(),
}
const joined = createEvent('game_joined', { ...game, actor_id: playerId })
const moved = createEvent('game_updated', { ...game, place: 'Court 2' })
const cancelled = createEvent('game_cancelled', { ...game, actor_id: creatorId })

const single = await deliver(joined, 'application/cloudevents+json')
const batch = await deliver([moved, cancelled], 'application/cloudevents-batch+json')
if (!batch.results) throw new Error(`the service refused the whole batch: ${batch.message}`)

for (const { id, status = 'rejected', notifications, message } of [{ id: joined.id, ...single }, ...batch.results]) {
  // A rejected event contains a mistake, so the service would reject it at every attempt. A developer must correct the
  // program that created the event.
  if (status === 'rejected') process.exitCode = 1
  console.log(`${id} ${status}: ${message ?? `${notifications} notification(s)`}`)
}

/**
 * Creates an event with an id and a time. A real games service creates the event in the transaction that changes the
 * game. The games service keeps the event in a table until the event is delivered. `source` and `id` identify the
 * event, so both must be the same in every attempt. Courtside applies the events of a game in the order of `time`.
 */
function createEvent(type, data) {
  return { specversion: '1.0', id: randomUUID(), source: '/games', type, time: new Date().toISOString(), data }
}

/**
 * Sends the events, and repeats the request if another attempt may succeed. Every attempt sends the same bytes. If the
 * service accepted an event but the answer was lost, the service answers the next attempt with `duplicate`.
 */
async function deliver(body, contentType) {
  for (let attempt = 1; attempt <= 8; attempt += 1) {
    const answer = await send(body, contentType).catch(() => undefined)
    if (answer && ![408, 429].includes(answer.status) && answer.status < 500 && !isAhead(answer.body))
      return answer.body
    // The upper limit of the pause doubles each time. The random factor spreads out the retries of all clients.
    const pause = Math.min(30, 0.5 * 2 ** (attempt - 1)) * Math.random()
    await delay(1000 * (Number(answer?.retryAfter ?? 0) + pause))
  }
  throw new Error('the events were not delivered: keep them and send them again later')
}

/**
 * Returns whether the service refused an event only for its `time`. The clock of the service or of this machine is
 * wrong, so the service may accept the same bytes later. In a repeated batch, the other events are duplicates.
 */
function isAhead(body) {
  return [body, ...(body.results ?? [])].some(({ errors = {} }) => Object.keys(errors).join() === 'time')
}

async function send(body, contentType) {
  const response = await fetch(`${url}/internal/v1/events`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': contentType },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(10_000),
  })
  return { status: response.status, retryAfter: response.headers.get('retry-after'), body: await response.json() }
}

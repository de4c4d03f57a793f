// Reports facts about a game, as a games service does: one by itself, then two in a batch.
//
//   node report.mjs GAME_ID CREATOR_ID PLAYER_ID
//
// COURTSIDE_URL says where the service is, COURTSIDE_INTAKE_KEY is one of its intake keys.
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'

const url = process.env.COURTSIDE_URL ?? 'http://127.0.0.1:3000'
const key = process.env.COURTSIDE_INTAKE_KEY
const [gameId, creatorId, playerId] = process.argv.slice(2).map(Number)
if (!key || playerId === undefined) {
  console.error('usage: COURTSIDE_INTAKE_KEY=… node report.mjs GAME_ID CREATOR_ID PLAYER_ID')
  process.exit(1)
}

// `data` is the state of the game after the fact, so that any fact can be read without those before it.
const game = {
  game_id: gameId,
  creator_id: creatorId,
  player_ids: [creatorId, playerId],
  starts_at: new Date(Date.now() + 3 * 86_400_000).toISOString(),
}
const joined = fact('game_joined', { ...game, actor_id: playerId })
const moved = fact('game_updated', { ...game, place: 'Court 2' })
const cancelled = fact('game_cancelled', { ...game, actor_id: creatorId })

const single = await deliver(joined, 'application/cloudevents+json')
const batch = await deliver([moved, cancelled], 'application/cloudevents-batch+json')
if (!batch.results) throw new Error(`the whole batch was refused: ${batch.message}`)

for (const { id, status = 'rejected', notifications, message } of [{ id: joined.id, ...single }, ...batch.results]) {
  // `rejected` won't get better by being sent again: somebody has to look at it.
  if (status === 'rejected') process.exitCode = 1
  console.log(`${id} ${status}: ${message ?? `${notifications} notification(s)`}`)
}

/**
 * Names and dates a fact. A games service does this in the transaction in which the thing happens, and keeps it in a table
 * until it is delivered: `source` and `id` are its name for ever, and `time` says in which order things happened.
 */
function fact(type, data) {
  return { specversion: '1.0', id: randomUUID(), source: '/games', type, time: new Date().toISOString(), data }
}

/**
 * Sends until there is an answer that another try wouldn't change. The same bytes every time: if the first try arrived and
 * only its answer was lost, the second is a `duplicate` without effect.
 */
async function deliver(body, contentType) {
  for (let attempt = 1; attempt <= 8; attempt += 1) {
    const answer = await send(body, contentType).catch(() => undefined)
    if (answer && ![408, 429].includes(answer.status) && answer.status < 500) return answer.body
    // Twice as long after each failure, and not all at once: others have lost the service too.
    const pause = Math.min(30, 0.5 * 2 ** (attempt - 1)) * Math.random()
    await delay(1000 * (Number(answer?.retryAfter ?? 0) + pause))
  }
  throw new Error('not delivered; keep the facts and send them again later')
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

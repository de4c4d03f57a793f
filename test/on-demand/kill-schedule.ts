// npm run test:kill: two real processes on one database, while games start. Again and again one of them is killed with
// -9 at a random moment. Every start is announced once, every reminder at most once, and the last reminder of each game
// always.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { INTAKE_KEY, settingsFor } from '../support/app.ts'
import { testDatabase } from '../support/database.ts'
import { makePlayers } from '../support/load.ts'
import { startService } from '../support/service.ts'

const ROUNDS = Number(process.env.KILL_ROUNDS ?? 30)
const TIMEOUT = { timeout: 300_000 + ROUNDS * 10_000 }
const GAMES = 2_000
// The approximate length of a round: a wait, a kill, a start.
const ROUND_MS = 4_000
const FIRST_START_MS = 10_000
// "a mail or reminder that was being handled goes out within 15 s of a worker's being there again"
const MAX_LATE_MS = 15_000

test(`after ${ROUNDS} kills while ${GAMES} games start every start is announced once`, TIMEOUT, async t => {
  const database = await testDatabase()
  const env = { ...settingsFor(database.url), REMINDER_OFFSETS: '2s,4s', TZ: 'Asia/Tokyo' }
  const services = await Promise.all([startService(env), startService(env)])
  // Also after a failure, because running processes would keep the test from ending.
  t.after(async () => {
    await Promise.all(services.map(service => service.stop('SIGKILL')))
    await database.drop()
  })
  const players = await makePlayers(database.sql)
  const began = Date.now()
  const spread = (ROUNDS * ROUND_MS) / GAMES
  for (let first = 0; first < GAMES; first += 100) {
    const events = Array.from({ length: 100 }, (_, index) => ({
      specversion: '1.0',
      id: `game-${first + index}`,
      source: '/kill',
      type: 'game_created',
      time: new Date(began).toISOString(),
      data: {
        game_id: first + index + 1,
        creator_id: players[0],
        player_ids: players,
        starts_at: new Date(began + FIRST_START_MS + (first + index) * spread).toISOString(),
      },
    }))
    const answer = await fetch(`${services[0]!.address}/internal/v1/events`, {
      method: 'POST',
      headers: { 'content-type': 'application/cloudevents-batch+json', authorization: `Bearer ${INTAKE_KEY}` },
      body: JSON.stringify(events),
    })
    assert.equal(answer.status, 200)
  }

  await delay(began + FIRST_START_MS - Date.now())
  for (let round = 0; round < ROUNDS; round += 1) {
    await delay(Math.random() * 1_000)
    await services[round % 2]!.stop('SIGKILL')
    services[round % 2] = await startService(env)
  }
  const countPlanned = async () => (await database.sql<{ count: number }>`select count(*) from game_schedule`)[0]!.count
  await delay(Math.max(0, began + FIRST_START_MS + GAMES * spread - Date.now()))
  const deadline = Date.now() + MAX_LATE_MS
  while ((await countPlanned()) > 0 && Date.now() < deadline) await delay(100)
  assert.equal(await countPlanned(), 0)

  const rows = await database.sql<{ type: string; user_id: number; count: number; distinct: number }>`
    select type, user_id, count(*), count(distinct data ->> 'game_id') as distinct
    from notification where type <> 'game_full' group by type, user_id`
  assert.equal(rows.length, players.length * 2)
  for (const row of rows) {
    assert.equal(row.distinct, GAMES)
    if (row.type === 'game_started') assert.equal(row.count, GAMES)
    else assert.ok(row.count <= GAMES * 2)
  }
  const [late] = await database.sql<{ seconds: number }>`
    select max(extract(epoch from created_at - (data ->> 'starts_at')::timestamptz))::float8 as seconds
    from notification where type = 'game_started'`
  t.diagnostic(`the latest start was announced after ${late!.seconds.toFixed(1)} s`)
  for (const service of services) assert.equal(await service.stop(), 0)
})

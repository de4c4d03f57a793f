// `npm run test:kill` runs two processes on one database while games start. The test repeatedly kills one of the
// processes with SIGKILL at a random moment. Each start must be announced exactly once, and each reminder at most once.
// The last reminder of each game must be announced.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { INTAKE_KEY, settingsFor } from '../support/app.ts'
import { testDatabase } from '../support/database.ts'
import { makePlayers } from '../support/load.ts'
import { startService } from '../support/service.ts'
import { waitUntil } from '../support/wait-until.ts'

const ROUNDS = Number(process.env.KILL_ROUNDS ?? 30)
const TIMEOUT = { timeout: 300_000 + ROUNDS * 10_000 }
const GAMES = 2_000
// The approximate duration of a round. In each round, the test kills one process and starts a new process.
const ROUND_MS = 4_000
const FIRST_START_MS = 10_000
// The maximum lateness of a start. If a worker is killed while it announces a start, another worker or the restarted
// worker announces this start within 15 s.
const MAX_LATE_MS = 15_000

test(`if ${ROUNDS} processes are killed, each of ${GAMES} game starts is announced exactly once`, TIMEOUT, async t => {
  const database = await testDatabase()
  const env = { ...settingsFor(database.url), REMINDER_OFFSETS: '2s,4s', TZ: 'Asia/Tokyo' }
  const services = await Promise.all([startService(env), startService(env)])
  // This cleanup runs even if the test fails. Without the cleanup, the remaining processes would keep the test from
  // ending.
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
  await waitUntil(async () => (await countPlanned()) === 0, MAX_LATE_MS)

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

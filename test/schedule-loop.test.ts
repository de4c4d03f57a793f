import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { countOverdue, type Fired, startSchedule } from '../src/games/schedule.ts'
import { anotherApp, harness } from './support/app.ts'
import { happens, newGame, person, send, typesAnnounced } from './support/games.ts'
import { DAY_MS, HOUR_MS, schedule } from './support/schedule.ts'

const h = harness({ REMINDER_OFFSETS: '1d,24h,90m,45s' })
const { startIn, fire, pass, event, create, planOf } = schedule(h)

/** The loop of a process that works, and what it fires. */
function loop() {
  const fired: Fired[] = []
  let heard = Promise.withResolvers<void>()
  const running = startSchedule(
    h.database.sql,
    () => ({ now: h.clock.now(), timeZone: 'Europe/Paris' }),
    h.ctx.log,
    one => {
      fired.push(one)
      heard.resolve()
    },
  )
  return {
    ...running,
    fired,
    async until(count: number) {
      while (fired.length < count) {
        await heard.promise
        heard = Promise.withResolvers<void>()
      }
    },
  }
}

describe('the loop', () => {
  test('tells what has come due, goes on after a fault, and nothing once it has stopped', async () => {
    const player = await person(h)
    const gameId = await create(startIn(2 * HOUR_MS), [player])
    h.clock.advance(HOUR_MS)
    const running = loop()
    await running.until(1)
    assert.deepEqual(running.fired, [{ type: 'game_reminder', outcome: 'told', lateSeconds: 30 * 60 }])
    await h.database.sql`alter table game_schedule rename to away`
    while (!h.logged.some(line => /cannot read the schedule/.test(String(line.msg)))) await new Promise(setImmediate)
    await h.database.sql`alter table away rename to game_schedule`
    h.clock.advance(HOUR_MS)
    await running.until(3)
    assert.deepEqual(await planOf(gameId), [])
    await running.stop()
    await create(startIn(HOUR_MS), [player])
    h.clock.advance(HOUR_MS)
    await running.stop()
    assert.equal(running.fired.length, 3)
    assert.deepEqual(await countOverdue(h.database.sql, h.clock.now()), { waiting: 2, oldestSeconds: 45 })
  })

  test('a backlog is worked off without waiting; a stop in the midst of it leaves the rest', async () => {
    const player = await person(h)
    for (let count = 0; count < 120; count += 1) await create(startIn(30_000), [player])
    h.clock.advance(30_000)
    assert.deepEqual(await countOverdue(h.database.sql, h.clock.now()), { waiting: 120, oldestSeconds: 0 })
    const running = loop()
    const stopped = running.stop()
    await stopped
    const { waiting } = await countOverdue(h.database.sql, h.clock.now())
    assert.equal(waiting, 120 - running.fired.length)
    assert.ok(waiting > 0)
    const again = loop()
    await again.until(waiting)
    await again.stop()
    assert.deepEqual(await countOverdue(h.database.sql, h.clock.now()), { waiting: 0, oldestSeconds: 0 })
    assert.equal((await typesAnnounced(h, player))[0]!.length, 120)
  })
})

describe('REMINDER_OFFSETS', () => {
  test('down to seconds; two that meet are one', async () => {
    const player = await person(h)
    const gameId = await create(startIn(3 * DAY_MS), [player])
    assert.equal((await planOf(gameId)).length, 4)
    h.clock.advance(3 * DAY_MS - 10 * 60_000)
    await fire()
    assert.equal(await pass(9 * 60_000 + 15_000, 15_000), 1)
    assert.equal((await typesAnnounced(h, player))[0]!.length, 2)
  })

  test('others after a restart: what was planned stays, what is planned from then on is by the new', async () => {
    const player = await person(h)
    const startsAt = startIn(3 * DAY_MS)
    const gameId = await create(startsAt, [player])
    const restarted = { ...h, ...(await anotherApp(h, { REMINDER_OFFSETS: '1h' })) }
    h.clock.advance(1)
    await happens(restarted, event('game_updated', gameId, startsAt, [player]))
    assert.equal((await planOf(gameId)).length, 4)
    const fresh = newGame()
    await happens(restarted, event('game_created', fresh, startsAt, [player]))
    assert.deepEqual(await planOf(fresh), ['game_reminder', 'game_started'])
    await restarted.close()
    assert.equal((await send(h, event('game_updated', fresh, startsAt, [player]))).status, 202)
  })
})

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { countOverdue, type Fired, startSchedule } from '../src/games/schedule.ts'
import { anotherApp, harness } from './support/app.ts'
import { makePlayer, newGameId, readTypes, report, send } from './support/games.ts'
import { DAY_MS, HOUR_MS, schedule } from './support/schedule.ts'
import { waitUntil } from './support/wait-until.ts'

const h = harness({ REMINDER_OFFSETS: '1d,24h,90m,45s' })
const { startIn, fireAllDue, advanceAndFire, gameEvent, createGame, readSchedule } = schedule(h)

/** Starts the polling loop of a worker, and collects the due times that the loop fires. */
function startLoop() {
  const fired: Fired[] = []
  const running = startSchedule(
    { sql: h.database.sql, hints: h.ctx.hints },
    () => ({ now: h.clock.now(), timeZone: 'Europe/Paris' }),
    h.ctx.log,
    one => fired.push(one),
  )
  return {
    ...running,
    fired,
    waitFor: (count: number) => waitUntil(() => fired.length >= count),
  }
}

describe('the polling loop of a worker', () => {
  test('the polling loop announces reminders and starts, continues after a database error, and does nothing after `stop`', async () => {
    const player = await makePlayer(h)
    const gameId = await createGame(startIn(2 * HOUR_MS), [player])
    h.clock.advance(HOUR_MS)
    const running = startLoop()
    await running.waitFor(1)
    assert.deepEqual(running.fired, [{ type: 'game_reminder', outcome: 'told', lateSeconds: 30 * 60 }])
    await h.database.sql`alter table game_schedule rename to away`
    await waitUntil(() => h.logged.some(line => /cannot read the schedule/.test(String(line.msg))))
    await h.database.sql`alter table away rename to game_schedule`
    h.clock.advance(HOUR_MS)
    await running.waitFor(3)
    assert.deepEqual(await readSchedule(gameId), [])
    await running.stop()
    await createGame(startIn(HOUR_MS), [player])
    h.clock.advance(HOUR_MS)
    await running.stop()
    assert.equal(running.fired.length, 3)
    assert.deepEqual(await countOverdue(h.database.sql, h.clock.now()), { waiting: 2, oldestSeconds: 45 })
  })

  test('the polling loop processes a backlog without pauses, and does not process the rest of the backlog after `stop`', async () => {
    const player = await makePlayer(h)
    for (let count = 0; count < 120; count += 1) await createGame(startIn(30_000), [player])
    h.clock.advance(30_000)
    assert.deepEqual(await countOverdue(h.database.sql, h.clock.now()), { waiting: 120, oldestSeconds: 0 })
    const running = startLoop()
    await running.stop()
    const { waiting } = await countOverdue(h.database.sql, h.clock.now())
    assert.equal(waiting, 120 - running.fired.length)
    assert.ok(waiting > 0)
    const again = startLoop()
    await again.waitFor(waiting)
    await again.stop()
    assert.deepEqual(await countOverdue(h.database.sql, h.clock.now()), { waiting: 0, oldestSeconds: 0 })
    assert.equal((await readTypes(h, player))[0]!.length, 120)
  })
})

describe('REMINDER_OFFSETS', () => {
  test('REMINDER_OFFSETS accepts offsets in seconds, and the two equal offsets 1d and 24h cause only one reminder', async () => {
    const player = await makePlayer(h)
    const gameId = await createGame(startIn(3 * DAY_MS), [player])
    assert.equal((await readSchedule(gameId)).length, 4)
    h.clock.advance(3 * DAY_MS - 10 * 60_000)
    await fireAllDue()
    assert.equal(await advanceAndFire(9 * 60_000 + 15_000, 15_000), 1)
    assert.equal((await readTypes(h, player))[0]!.length, 2)
  })

  test('after a restart with other offsets, planned reminders stay and new games use the new offsets', async () => {
    const player = await makePlayer(h)
    const startsAt = startIn(3 * DAY_MS)
    const gameId = await createGame(startsAt, [player])
    const restarted = { ...h, ...(await anotherApp(h, { REMINDER_OFFSETS: '1h' })) }
    h.clock.advance(1)
    await report(restarted, gameEvent(gameId, startsAt, [player]))
    assert.equal((await readSchedule(gameId)).length, 4)
    const fresh = newGameId()
    await report(restarted, gameEvent(fresh, startsAt, [player], { type: 'game_created' }))
    assert.deepEqual(await readSchedule(fresh), ['game_reminder', 'game_started'])
    await restarted.close()
    assert.equal((await send(h, gameEvent(fresh, startsAt, [player]))).status, 202)
  })
})

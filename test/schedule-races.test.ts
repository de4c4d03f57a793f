import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { connect, type Database, type Sql } from '../src/db/sql.ts'
import { ingestEvents } from '../src/games/intake.ts'
import { parseEvent } from '../src/games/parse-event.ts'
import { fireDue } from '../src/games/schedule.ts'
import { eraseUser } from '../src/personal-data.ts'
import { harness } from './support/app.ts'
import { makePlayer, readNotifications, readTypes, send } from './support/games.ts'
import { countAnnounced, HOUR_MS, schedule } from './support/schedule.ts'

const ROUNDS = 200

const h = harness()
const { startIn, fireAllDue, gameEvent, createGame, changeGame, readSchedule } = schedule(h)

describe('two processes that fire at the same time', () => {
  let other: Database
  before(() => {
    other = connect(h.database.url)
  })
  after(() => other.close())

  test('two processes that fire concurrently announce each start exactly once', async () => {
    const players = [await makePlayer(h), await makePlayer(h)]
    for (let round = 0; round < ROUNDS; round += 1) {
      for (let games = 0; games < 3; games += 1) await createGame(startIn(HOUR_MS), players)
      h.clock.advance(HOUR_MS)
      const fired = (await Promise.all([fireAllDue(), fireAllDue(other), fireAllDue(), fireAllDue(other)])).flat()
      assert.equal(countAnnounced(fired), 3)
      assert.equal(fired.length, 3)
    }
    for (const types of await readTypes(h, ...players)) assert.equal(types.length, ROUNDS * 3)
  })

  test('if a game is cancelled or moved while its start fires, the start is announced before the change or never', async () => {
    const player = await makePlayer(h)
    for (let round = 0; round < ROUNDS; round += 1) {
      const startsAt = startIn(HOUR_MS)
      const gameId = await createGame(startsAt, [player])
      h.clock.advance(HOUR_MS)
      const before = (await readNotifications(h, player)).length
      const isMove = round % 2 === 1
      const changed = () =>
        isMove
          ? changeGame(gameId, startIn(2 * HOUR_MS), [player])
          : changeGame(gameId, startsAt, [player], { type: 'game_cancelled', actor_id: player })
      // In half of the rounds, the change of the game begins before the firing. The time between the change and the
      // firing grows from round to round.
      const early = round % 4 < 2 ? changed() : undefined
      for (let turns = 0; early && turns < round / 4; turns += 1) await new Promise(setImmediate)
      const firing = Promise.all([fireAllDue(), fireAllDue(other)])
      const [fired] = await Promise.all([firing, early ?? changed()])
      const count = countAnnounced(fired.flat())
      assert.ok(count <= 1)
      // If neither process announced the start above, a later firing must not announce it either.
      assert.equal(countAnnounced(await fireAllDue()), 0)
      assert.equal((await readNotifications(h, player)).length - before, count)
      assert.equal((await readSchedule(gameId)).includes('game_started'), isMove)
      await h.database.sql`delete from game_schedule`
    }
  })

  test('if a producer reports a start while the schedule fires it, the start is announced exactly once', async () => {
    const player = await makePlayer(h)
    for (let round = 0; round < ROUNDS; round += 1) {
      const startsAt = startIn(HOUR_MS)
      const gameId = await createGame(startsAt, [player])
      h.clock.advance(HOUR_MS)
      await Promise.all([
        fireAllDue(),
        changeGame(gameId, startsAt, [player], { type: 'game_started' }),
        fireAllDue(other),
      ])
      await fireAllDue()
    }
    assert.equal((await readNotifications(h, player)).length, ROUNDS)
  })

  test('event reports, account deletions and the firing of due times do not deadlock', async () => {
    for (let round = 0; round < 50; round += 1) {
      const players = [await makePlayer(h), await makePlayer(h), await makePlayer(h)]
      const startsAt = startIn(HOUR_MS)
      const games = [await createGame(startsAt, players), await createGame(startsAt, players.toReversed())]
      h.clock.advance(HOUR_MS)
      const reports = games.flatMap(gameId => [
        send(h, gameEvent(gameId, startsAt, players.slice(1))),
        send(h, gameEvent(gameId, startsAt, players, { type: 'game_cancelled' })),
      ])
      const erasures = players.slice(0, 2).map(id => eraseUser(other, id))
      await Promise.all([fireAllDue(), fireAllDue(other), ...erasures])
      for (const { status, text } of await Promise.all(reports)) assert.equal(status, 202, text)
      await fireAllDue()
      assert.deepEqual(await h.database.sql`select game_id from game_schedule`, [])
    }
  })

  test('firing skips a game whose cancellation is not committed yet, and never announces its start', async () => {
    const player = await makePlayer(h)
    const startsAt = startIn(HOUR_MS)
    const [gameId, free] = [await createGame(startsAt, [player]), await createGame(startsAt, [player])]
    h.clock.advance(HOUR_MS)
    const cancelled = parseEvent(gameEvent(gameId, startsAt, [player], { type: 'game_cancelled' }), h.clock.now())
    const settings = { now: h.clock.now(), timeZone: 'Europe/Paris', reminderOffsets: [] }
    let announced = 0
    const sql: Pick<Sql, 'begin'> = {
      begin: work =>
        h.database.sql.begin(async tx => {
          const result = await work(tx)
          announced = countAnnounced(await fireAllDue(other))
          return result
        }),
    }
    await ingestEvents(
      { sql, hints: h.ctx.hints },
      h.ctx.keys,
      [cancelled as Exclude<typeof cancelled, Error>],
      settings,
    )
    // The open transaction does not lock the game `free`, so the start of this game is announced without delay.
    assert.equal(announced, 1)
    assert.deepEqual(await fireAllDue(other), [])
    assert.deepEqual(await readSchedule(free), [])
    assert.equal((await readTypes(h, player))[0]!.filter(type => type === 'game_started').length, 1)
  })

  test('if a worker is killed while it fires a start, the next worker announces the start once and without delay', async () => {
    const player = await makePlayer(h)
    await createGame(startIn(HOUR_MS), [player])
    h.clock.advance(HOUR_MS)
    const clock = { now: h.clock.now(), timeZone: 'Europe/Paris' }
    let rolledBack = 0
    const dying = other.begin(async (tx: Sql) => {
      rolledBack = countAnnounced(await fireDue(tx, clock, new Set()))
      // A backend keeps its locks for a moment after its connection is lost, and `fireDue` skips a locked game. So this
      // statement waits for the end of the backend, but not longer than 10 s.
      await h.database.sql`
        select pg_terminate_backend(pid, 10000) from pg_locks
        where database = (select oid from pg_database where datname = current_database())
          and relation = 'game_schedule'::regclass and mode = 'RowExclusiveLock'`
      await tx`select 1`
    })
    await assert.rejects(dying, { code: 'unavailable' })
    assert.equal(rolledBack, 1)
    assert.equal(countAnnounced(await fireAllDue()), 1)
    assert.equal((await readNotifications(h, player)).length, 1)
  })
})

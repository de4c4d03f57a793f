import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { connect, type Database, type Sql } from '../src/db/sql.ts'
import { ingestEvents } from '../src/games/intake.ts'
import { parseEvent } from '../src/games/parse-event.ts'
import { fireDue } from '../src/games/schedule.ts'
import { eraseUser } from '../src/personal-data.ts'
import { harness } from './support/app.ts'
import { announcedTo, person, send, typesAnnounced } from './support/games.ts'
import { HOUR_MS, schedule, told } from './support/schedule.ts'

const ROUNDS = 200

const h = harness()
const { startIn, fire, event, create, change, planOf } = schedule(h)

describe('two processes', () => {
  let other: Database
  before(() => {
    other = connect(h.database.url)
  })
  after(() => other.close())

  test('two processes that fire: each is told once', async () => {
    const players = [await person(h), await person(h)]
    for (let round = 0; round < ROUNDS; round += 1) {
      for (let games = 0; games < 3; games += 1) await create(startIn(HOUR_MS), players)
      h.clock.advance(HOUR_MS)
      const fired = (await Promise.all([fire(), fire(other), fire(), fire(other)])).flat()
      assert.equal(told(fired), 3)
      assert.equal(fired.length, 3)
    }
    for (const types of await typesAnnounced(h, ...players)) assert.equal(types.length, ROUNDS * 3)
  })

  test('a cancellation or a move beside two that fire: told before it, or never', async () => {
    const player = await person(h)
    for (let round = 0; round < ROUNDS; round += 1) {
      const startsAt = startIn(HOUR_MS)
      const gameId = await create(startsAt, [player])
      h.clock.advance(HOUR_MS)
      const before = (await announcedTo(h, player)).length
      const moves = round % 2 === 1
      const changed = () =>
        moves
          ? change(gameId, startIn(2 * HOUR_MS), [player])
          : change(gameId, startsAt, [player], 'game_cancelled', { actor_id: player })
      // By turns one or the other sets off first, the change with more and more of a start.
      const early = round % 4 < 2 ? changed() : undefined
      for (let turns = 0; early && turns < round / 4; turns += 1) await new Promise(setImmediate)
      const firing = Promise.all([fire(), fire(other)])
      const [fired] = await Promise.all([firing, early ?? changed()])
      const count = told(fired.flat())
      assert.ok(count <= 1)
      // What had not been told by then never is.
      assert.equal(told(await fire()), 0)
      assert.equal((await announcedTo(h, player)).length - before, count)
      assert.equal((await planOf(gameId)).includes('game_started'), moves)
      await h.database.sql`delete from game_schedule`
    }
  })

  test('a producer’s own start beside ours: one', async () => {
    const player = await person(h)
    for (let round = 0; round < ROUNDS; round += 1) {
      const startsAt = startIn(HOUR_MS)
      const gameId = await create(startsAt, [player])
      h.clock.advance(HOUR_MS)
      await Promise.all([fire(), change(gameId, startsAt, [player], 'game_started'), fire(other)])
      await fire()
    }
    assert.equal((await announcedTo(h, player)).length, ROUNDS)
  })

  test('joins, moves, deletions and firing: nobody waits in a circle', async () => {
    for (let round = 0; round < 50; round += 1) {
      const players = [await person(h), await person(h), await person(h)]
      const startsAt = startIn(HOUR_MS)
      const games = [await create(startsAt, players), await create(startsAt, players.toReversed())]
      h.clock.advance(HOUR_MS)
      const reports = games.flatMap(gameId => [
        send(h, event('game_updated', gameId, startsAt, players.slice(1))),
        send(h, event('game_cancelled', gameId, startsAt, players)),
      ])
      const erasures = players.slice(0, 2).map(id => eraseUser(other, id))
      await Promise.all([fire(), fire(other), ...erasures])
      for (const { status, text } of await Promise.all(reports)) assert.equal(status, 202, text)
      await fire()
      assert.deepEqual(await h.database.sql`select game_id from game_schedule`, [])
    }
  })
  test('a cancellation that isn’t committed yet holds the game: passed over, and then nothing', async () => {
    const player = await person(h)
    const startsAt = startIn(HOUR_MS)
    const [gameId, free] = [await create(startsAt, [player]), await create(startsAt, [player])]
    h.clock.advance(HOUR_MS)
    const cancelled = parseEvent(event('game_cancelled', gameId, startsAt, [player]), h.clock.now())
    await h.database.sql.begin(async tx => {
      const settings = { now: h.clock.now(), timeZone: 'Europe/Paris', reminderOffsets: [] }
      await ingestEvents(tx, [cancelled as Exclude<typeof cancelled, Error>], settings)
      // The other game is told meanwhile.
      assert.equal(told(await fire(other)), 1)
    })
    assert.deepEqual(await fire(other), [])
    assert.deepEqual(await planOf(free), [])
    assert.equal((await typesAnnounced(h, player))[0]!.filter(type => type === 'game_started').length, 1)
  })

  test('killed in the midst of it: the next tells it, at once and once', async () => {
    const player = await person(h)
    await create(startIn(HOUR_MS), [player])
    h.clock.advance(HOUR_MS)
    const clock = { now: h.clock.now(), timeZone: 'Europe/Paris' }
    let announcedInVain = 0
    const dying = other.begin(async (tx: Sql) => {
      announcedInVain = told(await fireDue(tx, clock))
      // Waited for to the end of its process: a connection is told of its end before its locks are let go.
      await h.database.sql`
        select pg_terminate_backend(pid, 10000) from pg_locks
        where database = (select oid from pg_database where datname = current_database())
          and relation = 'game_schedule'::regclass and mode = 'RowExclusiveLock'`
      await tx`select 1`
    })
    await assert.rejects(dying, { code: 'unavailable' })
    assert.equal(announcedInVain, 1)
    assert.equal(told(await fire()), 1)
    assert.equal((await announcedTo(h, player)).length, 1)
  })
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { connect } from '../src/db/sql.ts'
import { ingestEvents } from '../src/games/intake.ts'
import { type GameEvent, parseEvent } from '../src/games/parse-event.ts'
import { harness } from './support/app.ts'
import { cloudEvent, makeFourPlayers, newGameId, readGame, report, send, sendBatch } from './support/games.ts'
import { startProxy } from './support/proxy.ts'

const h = harness()

const created = (gameId: number, place: string, envelope: Record<string, unknown> = {}) =>
  cloudEvent('game_created', { game_id: gameId, creator_id: 1, player_ids: [1], place }, envelope)

test('a duplicate and an event with a used id neither create nor lock their games', async () => {
  const [gameId, otherId] = [newGameId(), newGameId()]
  const body = created(gameId, 'Court 1')
  await report(h, body)
  await h.database.sql`delete from game where id = ${gameId}`
  const mismatch = { ...body, data: { ...body.data, game_id: otherId } }
  const repeat = async () => [(await send(h, body)).status, (await send(h, mismatch)).status]
  assert.deepEqual(await repeat(), [200, 422])
  assert.deepEqual([await readGame(h, gameId), await readGame(h, otherId)], [undefined, undefined])
  await report(h, created(gameId, 'Court 2'))
  await report(h, created(otherId, 'Court 2'))
  await h.database.sql.begin(async tx => {
    await tx`select 1 from game where id in (${gameId}, ${otherId}) for update`
    assert.deepEqual(await repeat(), [200, 422])
  })
})

test('a batch locks the games of its new events only, and a new game starts with the state of its first new event', async () => {
  const [players, repeatedId, newId] = [await makeFourPlayers(h), newGameId(), newGameId()]
  const repeated = created(repeatedId, 'Court 1')
  await report(h, repeated)
  // A score event does not change the state with which a game starts.
  const data = { game_id: newId, creator_id: players[0], player_ids: players, score: { sets: '6-4' } }
  const score = (place: string) => cloudEvent('score_finalized', { ...data, place })
  const [first, second] = [score('Court 3'), score('Court 4')]
  const known = { ...score('Court 2'), id: repeated.id, source: repeated.source }
  await h.database.sql.begin(async tx => {
    await tx`select 1 from game where id = ${repeatedId} for update`
    const { body } = await sendBatch(h, [repeated, known, first, first, second])
    assert.deepEqual(
      body.results.map(({ status, code }: { status: string; code?: string }) => code ?? status),
      ['duplicate', 'event_mismatch', 'accepted', 'duplicate', 'accepted'],
    )
  })
  assert.equal((await readGame(h, newId))!.place, 'Court 3')
})

test('a transaction of the intake needs four round trips', async () => {
  const [creator, player] = await makeFourPlayers(h)
  const proxy = await startProxy(new URL(h.database.url))
  const sql = connect(proxy.url, { max: 1 })
  const settings = { now: h.clock.now(), timeZone: 'Europe/Paris', reminderOffsets: h.ctx.config.reminderOffsets }
  const ingest = async () => {
    const data = { creator_id: creator, player_ids: [creator, player], actor_id: player }
    const events = [1, 2, 3].map(
      () => parseEvent(cloudEvent('game_joined', { game_id: newGameId(), ...data }), settings.now) as GameEvent,
    )
    const { outcomes } = await ingestEvents({ sql, hints: h.ctx.hints }, h.ctx.keys, events, settings)
    assert.deepEqual(new Set(outcomes.map(({ status }) => status)), new Set(['accepted']))
  }
  await ingest()
  const before = proxy.countWrites()
  await ingest()
  assert.equal(proxy.countWrites() - before, 4)
  await sql.close()
  await proxy.close()
})

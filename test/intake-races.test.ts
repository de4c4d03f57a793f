import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { eraseUser } from '../src/personal-data.ts'
import { harness } from './support/app.ts'
import { waitsForLock } from './support/database.ts'
import {
  atMinute,
  cloudEvent,
  makeFourPlayers,
  makePlayer,
  newGameId,
  readGame,
  readNotifications,
  readTypes,
  send,
  sendBatch,
} from './support/games.ts'
import { waitUntil } from './support/wait-until.ts'

const ROUNDS = 50

const h = harness()

type Answers = Awaited<ReturnType<typeof send>>[]

async function repeatRace(race: (round: number) => Promise<void>): Promise<void> {
  for (let round = 0; round < ROUNDS; round += 1) await race(round)
}

/** Counts how often each value occurs. */
function tally(values: (string | number)[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const value of values) counts[value] = (counts[value] ?? 0) + 1
  return counts
}

function assertNoServerError(answers: Answers): void {
  for (const { status, text } of answers) assert.ok(status < 500, text)
}

describe('concurrent reports of the same event', () => {
  test('exactly one of fifty concurrent reports of an event is accepted, and the event takes effect once', async () => {
    for (let round = 0; round < 10; round += 1) {
      const [anna, bob] = await makeFourPlayers(h)
      const body = cloudEvent('game_joined', {
        game_id: newGameId(),
        creator_id: anna,
        player_ids: [anna, bob],
        actor_id: bob,
      })
      const answers = await Promise.all(Array.from({ length: 50 }, () => send(h, body)))
      assert.deepEqual(tally(answers.map(answer => answer.status)), { 200: 49, 202: 1 })
      for (const answer of answers) assert.equal(answer.body.notifications, 1)
      assert.deepEqual(await readTypes(h, anna, bob), [['game_joined'], []])
    }
  })

  test('if an event is reported alone and in several batches concurrently, exactly one report is accepted', () =>
    repeatRace(async () => {
      const [anna, bob] = await makeFourPlayers(h)
      const state = { creator_id: anna, player_ids: [anna, bob], actor_id: bob }
      const one = cloudEvent('game_joined', { game_id: newGameId(), ...state })
      const two = cloudEvent('game_left', { game_id: newGameId(), ...state })
      const [alone, again, ...batches] = await Promise.all([
        send(h, one),
        send(h, two),
        sendBatch(h, [one, two]),
        sendBatch(h, [two, one]),
        sendBatch(h, [two, one, two]),
      ])
      assertNoServerError([alone!, again!, ...batches])
      const results = [alone!.body, again!.body, ...batches.flatMap(({ body }) => body.results)]
      const accepted = results.filter(result => result.status === 'accepted').map(result => result.id)
      assert.deepEqual(accepted.sort(), [one.id, two.id].sort())
      assert.deepEqual((await readTypes(h, anna))[0]!.toSorted(), ['game_joined', 'game_left'])
    }))

  test('if two different events with the same id arrive concurrently, one is accepted and the other is a mismatch', () =>
    repeatRace(async () => {
      const games = [newGameId(), newGameId()]
      const [one, two] = games.map(game_id => cloudEvent('game_created', { game_id, creator_id: 1, player_ids: [] }))
      const bodies = [one, { ...two, id: one!.id }]
      const answers = await Promise.all([...bodies, ...bodies].map(body => send(h, body)))
      assert.deepEqual(tally(answers.map(answer => answer.body.status ?? answer.body.code)), {
        accepted: 1,
        duplicate: 1,
        event_mismatch: 2,
      })
      const rows = await Promise.all(games.map(game_id => readGame(h, game_id)))
      assert.equal(rows.filter(row => row !== undefined).length, 1)
    }))

  test('concurrent batches that use the same ids in opposite orders do not deadlock', () =>
    repeatRace(async () => {
      const [first, second] = [0, 1].map(() =>
        Array.from({ length: 10 }, () =>
          cloudEvent('game_created', { game_id: newGameId(), creator_id: 1, player_ids: [] }),
        ),
      )
      const sameIds = second!.map((body, index) => ({ ...body, id: first![9 - index]!.id }))
      assertNoServerError(await Promise.all([sendBatch(h, first), sendBatch(h, sameIds)]))
    }))
})

describe('concurrent events of one game', () => {
  test('after three concurrent joins the game has the latest state, and each player got game_full exactly once', () =>
    repeatRace(async () => {
      const all = await makeFourPlayers(h)
      const state = { game_id: newGameId(), creator_id: all[0] }
      const joins = [2, 3, 4].map(count =>
        cloudEvent(
          'game_joined',
          { ...state, player_ids: all.slice(0, count), actor_id: all[count - 1] },
          atMinute(count),
        ),
      )
      assertNoServerError(
        await Promise.all(
          [...joins, cloudEvent('game_full', { ...state, player_ids: all }, atMinute(5))].map(body => send(h, body)),
        ),
      )
      assert.deepEqual((await readGame(h, state.game_id))!.player_ids, all)
      for (const types of await readTypes(h, ...all)) {
        assert.equal(types.filter(type => type === 'game_full').length, 1)
      }
    }))

  test('if game_reminder and game_started for one starts_at arrive several times concurrently, each player gets one of each', () =>
    repeatRace(async () => {
      const all = await makeFourPlayers(h)
      const state = { game_id: newGameId(), creator_id: all[0], player_ids: all }
      const types = ['game_started', 'game_reminder', 'game_started', 'game_reminder', 'game_started']
      assertNoServerError(await Promise.all(types.map(type => send(h, cloudEvent(type, state)))))
      for (const sent of await readTypes(h, ...all)) assert.deepEqual(sent.sort(), ['game_reminder', 'game_started'])
    }))

  test('if joins and a cancellation arrive concurrently, no join is announced after the cancellation', () =>
    repeatRace(async () => {
      const [anna, bob] = await makeFourPlayers(h)
      const state = { game_id: newGameId(), creator_id: anna, player_ids: [anna, bob] }
      const join = () => send(h, cloudEvent('game_joined', { ...state, actor_id: bob }))
      assertNoServerError(
        await Promise.all([join(), join(), send(h, cloudEvent('game_cancelled', state)), join(), join()]),
      )
      const [sent] = await readTypes(h, anna)
      assert.equal(sent!.at(-1), 'game_cancelled')
      assert.equal((await readGame(h, state.game_id))!.cancelled, true)
    }))
})

describe('concurrent batches', () => {
  test('concurrent batches that name new and known games in opposite orders do not deadlock', () =>
    repeatRace(async () => {
      const ids = Array.from({ length: 20 }, () => newGameId())
      const items = (games: number[]) =>
        games.map(game_id => cloudEvent('game_updated', { game_id, creator_id: 1, player_ids: [2, 3] }))
      await sendBatch(h, items(ids.filter((_, index) => index % 3 === 0)))
      const answers = await Promise.all([
        sendBatch(h, items(ids)),
        sendBatch(h, items(ids.toReversed())),
        sendBatch(h, items([...ids.slice(10), ...ids.slice(0, 10)])),
        ...ids
          .slice(5, 9)
          .map(game_id => send(h, cloudEvent('game_updated', { game_id, creator_id: 1, player_ids: [2] }))),
      ])
      assertNoServerError(answers)
      for (const { body } of answers.slice(0, 3)) {
        assert.deepEqual(tally(body.results.map((result: { status: string }) => result.status)), { accepted: 20 })
      }
    }))
})

describe('the deletion of a user during the intake', () => {
  test('the intake accepts events about a user who is being deleted, and no notification names the user afterwards', () =>
    repeatRace(async round => {
      const [anna, gone] = [await makePlayer(h, 'Anna'), await makePlayer(h, 'Gaspard')]
      const games = [newGameId(), newGameId(), newGameId()]
      const join = (game_id: number) =>
        cloudEvent('game_joined', { game_id, creator_id: anna, player_ids: [anna, gone], actor_id: gone })
      // The test reports two of the games in descending order of their ids, so the table `game` stores their rows in
      // descending order. The intake and the deletion must nevertheless lock the rows in ascending order of the ids.
      for (const game_id of games.slice(1).toReversed()) await send(h, join(game_id))
      const events = [
        () => sendBatch(h, games.map(join).toReversed()),
        () => eraseUser(h.database.sql, gone),
        () =>
          send(h, cloudEvent('game_left', { game_id: games[1], creator_id: gone, player_ids: [gone], actor_id: anna })),
      ]
      const start = round % events.length
      await Promise.all([...events.slice(start), ...events.slice(0, start)].map(event => event())).then(answers =>
        assertNoServerError(answers.filter(answer => typeof answer === 'object')),
      )
      assert.deepEqual(await readNotifications(h, gone), [])
      for (const { message } of await readNotifications(h, anna)) assert.doesNotMatch(message, /Gaspard/)
    }))

  test('if a recipient is deleted before the notifications are stored, the intake skips this recipient', async () => {
    const [anna, gone] = await makeFourPlayers(h)
    const state = { game_id: newGameId(), creator_id: anna, player_ids: [anna, gone], actor_id: 900_001 }
    const answer = await h.database.sql.begin(async sql => {
      await sql`delete from app_user where id = ${gone}`
      const waiting = send(h, cloudEvent('game_joined', state))
      await waitUntil(() => waitsForLock(h.database.sql, 'app_user'))
      return { waiting }
    })
    const { status, body } = await answer.waiting
    assert.deepEqual([status, body.notifications], [202, 1])
  })
})

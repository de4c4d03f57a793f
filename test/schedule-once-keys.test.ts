import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as onceKeys from '../src/games/once-key.ts'
import { harness } from './support/app.ts'
import { makePlayer } from './support/games.ts'
import { DAY_MS, HOUR_MS, schedule } from './support/schedule.ts'

const h = harness()
const { startIn, advanceAndFire, createGame, changeGame } = schedule(h)

test('the current version builds the same once-keys as earlier versions, because all versions use the same table', async () => {
  const players = [await makePlayer(h)]
  const startsAt = startIn(2 * DAY_MS)
  const gameId = await createGame(startsAt, players)
  await changeGame(gameId, startsAt, players, { type: 'game_reminder' })
  await advanceAndFire(2 * DAY_MS, HOUR_MS)
  const start = startsAt.replace('.000Z', '.000000Z')
  const dueAt = (ms: number) => new Date(Date.parse(startsAt) - ms).toISOString()
  const rows = await h.database.sql`select notice from game_notice where game_id = ${gameId} order by notice`
  assert.deepEqual(
    rows.map(row => row.notice),
    [
      `reminder@${start}`,
      `reminder@${start} due ${dueAt(DAY_MS)}`,
      `reminder@${start} due ${dueAt(2 * HOUR_MS)}`,
      `started@${start}`,
    ],
  )
  const [started] = await h.database.sql`
    select dedup_key from notification where user_id = ${players[0]} and type = 'game_started'`
  assert.equal(started!.dedup_key, `game_started:${gameId} started@${start}`)
})

test('`claim` returns only the first of several equal once-keys, and no once-key that was claimed before', async () => {
  const { sql } = h.database
  const game = { startsAt: '2027-01-16T17:00:00.000000Z' }
  const one = await createGame(startIn(DAY_MS), [await makePlayer(h)])
  const two = await createGame(startIn(DAY_MS), [await makePlayer(h)])
  const keys = [one, one, two].map(id => onceKeys.startedKey({ id, ...game }))
  const claimed = await onceKeys.claim(sql, keys, h.clock.now())
  assert.deepEqual(
    keys.map(key => claimed.has(key)),
    [true, false, true],
  )
  const other = onceKeys.producerReminderKey({ id: two, ...game })
  assert.deepEqual([...(await onceKeys.claim(sql, [keys[2]!, other], h.clock.now()))], [other])
})

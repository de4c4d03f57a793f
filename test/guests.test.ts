import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { FIRST_GUEST_ID } from '../src/accounts/users.ts'
import { harness } from './support/app.ts'
import { cloudEvent, makePlayer, newGameId, readNotifications, readTypes, report } from './support/games.ts'
import { readPayload, signUp } from './support/scenario.ts'
import { DAY_MS, HOUR_MS, schedule } from './support/schedule.ts'

const h = harness()
const { startIn, createGame, advanceAndFire } = schedule(h)

const GUESTS = [FIRST_GUEST_ID, FIRST_GUEST_ID + 1, Number.MAX_SAFE_INTEGER]

describe('guests', () => {
  test('guests count as players and actors, get no notification, and do not count as skipped recipients', async () => {
    const anna = await makePlayer(h, 'Anna')
    const player_ids = [anna, ...GUESTS]
    h.logged.length = 0
    const event = cloudEvent('game_joined', { game_id: newGameId(), creator_id: anna, player_ids, actor_id: GUESTS[2] })
    assert.equal(await report(h, event), 2)
    const [joined, full] = await readNotifications(h, anna)
    assert.match(joined!.message, /^Un joueur a rejoint la partie .* \(4\/4\)\.$/)
    assert.equal(full!.type, 'game_full')
    assert.equal(h.logged.filter(line => line.skipped !== undefined).length, 0)
  })

  test('a game whose creator and players are guests has reminders for the users among its players', async () => {
    const anna = await makePlayer(h, 'Anna')
    await createGame(startIn(3 * DAY_MS), [GUESTS[0]!, anna])
    await createGame(startIn(3 * DAY_MS), GUESTS)
    await advanceAndFire(3 * DAY_MS + HOUR_MS)
    assert.deepEqual(await readTypes(h, anna), [['game_reminder', 'game_reminder', 'game_started']])
    const [row] = await h.database.sql<{ count: number }>`
      select count(*)::int as count from notification where user_id >= ${FIRST_GUEST_ID}`
    assert.equal(row!.count, 0)
  })

  test('no sign-up ever gets the number of a guest: the sequence of the account ids ends below it', async () => {
    const { sql } = h.database
    await sql`select setval('app_user_id_seq', ${FIRST_GUEST_ID - 2})`
    const last = await signUp(h)
    assert.equal(readPayload(last.token).sub, String(FIRST_GUEST_ID - 1))
    await assert.rejects(signUp(h))
    await assert.rejects(sql`select setval('app_user_id_seq', ${FIRST_GUEST_ID})`, { code: '22003' })
    const [row] = await sql<{ highest: number }>`select max(id) as highest from app_user`
    assert.equal(row!.highest, FIRST_GUEST_ID - 1)
  })
})

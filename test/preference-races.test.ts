import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NOTIFICATION_TYPES } from '../src/notification-types.ts'
import { eraseUser } from '../src/personal-data.ts'
import { pauseEmail, readAll } from '../src/reach/preferences.ts'
import { harness } from './support/app.ts'
import { makeUser } from './support/factories.ts'

const h = harness()

const URL = '/api/v1/notification-preferences'
const ROUNDS = 40

const readOne = async (userId: number) =>
  (await readAll(h.database.sql, [userId], h.ctx.config.preferenceDefaults)).get(userId)!

test('hundreds of concurrent changes of different types lose none, and each makes one version', async () => {
  const { id, token } = await makeUser(h)
  for (let round = 1; round <= ROUNDS; round += 1) {
    const isOn = round % 2 === 0
    const changes = NOTIFICATION_TYPES.flatMap(type => [{ [type]: { push: isOn } }, { [type]: { email: !isOn } }])
    const answers = await Promise.all(changes.map(types => h.call('PATCH', URL, { token, body: { types } })))
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]))
    const { types } = await readOne(id)
    for (const type of NOTIFICATION_TYPES) assert.deepEqual(types[type], { push: isOn, email: !isOn })
  }
  // The first round changes nothing for the two types that are mailed by default.
  assert.equal((await readOne(id)).version, ROUNDS * NOTIFICATION_TYPES.length * 2 - 2)
})

test('a concurrent unsubscription and a change of another type are both kept', async () => {
  const { id, token } = await makeUser(h)
  for (let round = 0; round < ROUNDS; round += 1) {
    await h.call('PATCH', URL, { token, body: { types: { game_cancelled: { email: true } }, email_paused: false } })
    const push = round % 2 === 0
    const racers = [
      () => h.call('PATCH', URL, { token, body: { types: { game_cancelled: { push } } } }),
      () => pauseEmail(h.database.sql, id, 'game_cancelled', h.clock.now()),
      () => pauseEmail(h.database.sql, id, undefined, h.clock.now()),
    ]
    await Promise.all(racers.map((_, index) => racers[(index + round) % racers.length]!()))
    const { types, emailPaused } = await readOne(id)
    assert.deepEqual([types.game_cancelled, emailPaused], [{ push, email: false }, true])
  }
})

test('of two concurrent changes that together make equal times, one is refused', async () => {
  const { id, token } = await makeUser(h)
  for (let round = 0; round < ROUNDS; round += 1) {
    await h.call('PATCH', URL, { token, body: { quiet_hours: { from: '20:00', to: '06:00' } } })
    const answers = await Promise.all(
      [{ from: '05:00' }, { to: '05:00' }].map(body => h.call('PATCH', URL, { token, body: { quiet_hours: body } })),
    )
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 422])
    const { quietHours } = await readOne(id)
    assert.notEqual(quietHours.from, quietHours.to)
  }
})

test('a change beside the deletion of its account gets a 200 or a 401, and leaves no row', async () => {
  for (let round = 0; round < ROUNDS; round += 1) {
    const { id, token } = await makeUser(h)
    const change = () => h.call('PATCH', URL, { token, body: { quiet_hours: { enabled: true } } })
    const racers = [change, () => eraseUser(h.database.sql, id), change]
    const results = await Promise.all(racers.map((_, index) => racers[(index + round) % racers.length]!()))
    for (const result of results) {
      if (typeof result !== 'boolean') assert.ok([200, 401].includes(result.status), result.text)
    }
    const rows = await h.database.sql`select from notification_preference where user_id = ${id}`
    assert.equal(rows.length, 0)
  }
})

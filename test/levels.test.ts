import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { harness } from './support/app.ts'
import { waitsForLock } from './support/database.ts'
import { assertError } from './support/endpoints.ts'
import { makeUser } from './support/factories.ts'
import { signUp } from './support/scenario.ts'
import { waitUntil } from './support/wait-until.ts'

const h = harness()

function chooseLevel(token: string | undefined, game_level_id: unknown) {
  return h.call('POST', '/api/v1/auth/level-assessment', { ...(token && { token }), body: { game_level_id } })
}

describe('GET /game-levels', () => {
  test('GET /game-levels is public and returns the levels by position, with the specified fields and no others', async () => {
    await h.database.sql`update game_level set position = 10 - position`
    const answer = await h.call('GET', '/api/v1/game-levels')
    assert.equal(answer.status, 200)
    assert.equal(answer.body.data.length, 8)
    const positions = answer.body.data.map((level: { position: number }) => level.position)
    assert.deepEqual(positions, [2, 3, 4, 5, 6, 7, 8, 9])
    for (const level of answer.body.data) {
      assert.deepEqual(Object.keys(level), ['id', 'slug', 'name', 'description', 'position'])
    }
  })
})

describe('GET /auth/me', () => {
  test('GET /auth/me returns the specified fields and no others', async () => {
    const { email, token } = await signUp(h)
    const answer = await h.call('GET', '/api/v1/auth/me', { token })
    const { id, ...user } = answer.body.data
    assert.ok(Number.isInteger(id))
    const signedUpAt = `${h.clock.now().toISOString().slice(0, 19)}+00:00`
    assert.deepEqual(user, {
      email,
      first_name: 'Marie',
      last_name: 'Durand',
      locale: 'fr',
      game_level: null,
      created_at: signedUpAt,
      updated_at: signedUpAt,
    })
  })

  test('GET /auth/me without a token gets 401', async () => {
    assert.equal((await h.call('GET', '/api/v1/auth/me')).status, 401)
  })
})

describe('POST /auth/level-assessment', () => {
  test('the answer to a level choice and GET /auth/me show the chosen level, and a second choice replaces it', async () => {
    const { token } = await signUp(h)
    const levels = (await h.call('GET', '/api/v1/game-levels')).body.data
    for (const level of [levels[0], levels[5]]) {
      const answer = await chooseLevel(token, level.id)
      assert.equal(answer.status, 200)
      assert.deepEqual(answer.body.data.game_level, level)
      const me = await h.call('GET', '/api/v1/auth/me', { token })
      assert.deepEqual(me.body.data, answer.body.data)
    }
  })

  for (const id of [0, -1, 9999, 1.5, '1', true, null, [1], 2 ** 53, 1e300, 9007199254740991]) {
    test(`the level id ${JSON.stringify(id)} gets a 422 that names game_level_id`, async () => {
      const { token } = await signUp(h)
      const answer = await chooseLevel(token, id)
      assert.equal(answer.status, 422, answer.text)
      assert.deepEqual(Object.keys(answer.body.errors), ['game_level_id'])
    })
  }

  test('if the account is deleted during a level choice, the choice gets 401', async () => {
    const { id, token } = await makeUser(h)
    const [level] = await h.database.sql<{ id: number }>`select id from game_level limit 1`
    let answer: ReturnType<typeof chooseLevel>
    await h.database.sql.begin(async tx => {
      await tx`delete from app_user where id = ${id}`
      answer = chooseLevel(token, level!.id)
      await waitUntil(() => waitsForLock(h.database.sql))
    })
    assertError(await answer!, 401, 'unauthenticated')
  })

  test('a level choice without a token gets 401, even if its body is invalid', async () => {
    assert.equal((await chooseLevel(undefined, 'x')).status, 401)
  })
})

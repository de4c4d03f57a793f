// This file has one test for each sentence of the specification's chapter "States and transitions".
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { harness } from '../support/app.ts'
import { assertError } from '../support/endpoints.ts'
import { makeUser } from '../support/factories.ts'
import { cloudEvent, newGameId, report } from '../support/games.ts'
import { ISO_8601_WITH_OFFSET, inbox } from '../support/inbox.ts'
import { newEmail, otherThan, profile, queuedCode } from '../support/scenario.ts'

const h = harness()

const { list, read, makeOneOfEach } = inbox(h)

describe('States and transitions', () => {
  describe('Notification', () => {
    test('"States: unread (read_at is null), read (read_at is set), deleted (no longer exists)."', async () => {
      const { id, token, unread, read: wasRead } = await makeOneOfEach()
      assert.deepEqual([unread.read_at, typeof wasRead.read_at], [null, 'string'])
      await h.call('DELETE', `/api/v1/notifications/${unread.id}`, { token })
      const left = await h.database.sql`select id from notification where user_id = ${id}`
      assert.deepEqual(left, [{ id: wasRead.id }])
      assertError(await read(token, unread.id), 404, 'not_found')
    })

    test('"(none) | a game or score trigger listed under Events | | unread | notification is stored for the target user"', async () => {
      const [creator, player] = [await makeUser(h), await makeUser(h)]
      const players = { creator_id: creator.id, player_ids: [creator.id, player.id], actor_id: creator.id }
      const events = [
        cloudEvent('game_joined', { game_id: newGameId(), ...players, actor_id: player.id }),
        cloudEvent('score_submitted', {
          game_id: newGameId(),
          ...players,
          actor_id: player.id,
          score: { sets: '6-4 6-3' },
        }),
      ]
      for (const event of events) assert.equal(await report(h, event), 1)
      const { data, meta } = await list(creator.token)
      const received = data.map(({ type, is_read }: { type: string; is_read: boolean }) => [type, is_read])
      assert.deepEqual(received, [
        ['score_submitted', false],
        ['game_joined', false],
      ])
      assert.equal(meta.unread_count, 2)
    })

    test('"unread | POST /notifications/{id}/read | caller owns it | read | read_at set, is_read true; the updated notification is returned"', async () => {
      const { token, unread } = await makeOneOfEach()
      const answer = await read(token, unread.id)
      const { data } = answer.body
      assert.deepEqual([answer.status, data], [200, { ...unread, is_read: true, read_at: data.read_at }])
      assert.match(data.read_at, ISO_8601_WITH_OFFSET)
      assert.deepEqual((await list(token)).data[0], data)
      const stranger = await makeUser(h)
      assertError(await read(stranger.token, unread.id), 403, 'forbidden')
    })

    test('"unread | POST /notifications/read-all | caller owns it | read | count returned is the number of notifications changed"', async () => {
      const [mine, other] = [await makeOneOfEach(), await makeOneOfEach()]
      const answer = await h.call('POST', '/api/v1/notifications/read-all', { token: mine.token })
      assert.equal(answer.body.count, 1)
      assert.equal((await list(mine.token)).data[0].is_read, true)
      assert.equal((await list(other.token)).data[0].is_read, false)
    })

    test('"unread or read | DELETE /notifications/{id} | caller owns it | deleted | confirmation message returned"', async () => {
      const { token, unread, read } = await makeOneOfEach()
      const stranger = await makeUser(h)
      for (const { id } of [unread, read]) {
        assertError(await h.call('DELETE', `/api/v1/notifications/${id}`, { token: stranger.token }), 403, 'forbidden')
        const answer = await h.call('DELETE', `/api/v1/notifications/${id}`, { token })
        assert.deepEqual([answer.status, answer.body], [200, { message: 'La notification a été supprimée.' }])
      }
      assert.deepEqual((await list(token)).data, [])
    })
  })

  describe('One-time code', () => {
    const verify = (email: string, code: string) => h.call('POST', '/api/v1/auth/verify-otp', { body: { email, code } })
    const requestCode = (email: string) => h.call('POST', '/api/v1/auth/request-otp', { body: profile(email) })

    async function requestNewCode(): Promise<{ email: string; code: string }> {
      const email = newEmail()
      assert.equal((await requestCode(email)).status, 200)
      return { email, code: await queuedCode(h, email) }
    }

    test('"A code is created by request-otp and is valid for 15 minutes."', async () => {
      const [late, tooLate] = [await requestNewCode(), await requestNewCode()]
      h.clock.advance(15 * 60_000 - 1)
      assert.equal((await verify(late.email, late.code)).status, 200)
      h.clock.advance(1)
      assertError(await verify(tooLate.email, tooLate.code), 422, 'otp_invalid', 'code')
    })

    test('"At most 5 verification attempts are allowed before it expires."', async () => {
      const [fifth, sixth] = [await requestNewCode(), await requestNewCode()]
      for (let guess = 1; guess <= 4; guess += 1) await verify(fifth.email, otherThan(fifth.code))
      assert.equal((await verify(fifth.email, fifth.code)).status, 200)
      for (let guess = 1; guess <= 5; guess += 1) await verify(sixth.email, otherThan(sixth.code))
      assertError(await verify(sixth.email, sixth.code), 422, 'otp_invalid', 'code')
    })

    test('"A new code cannot be sent before 60 seconds have passed since the previous send."', async () => {
      const { email, code } = await requestNewCode()
      h.clock.advance(59_999)
      assertError(await requestCode(email), 429, 'wait')
      assert.equal(await queuedCode(h, email), code)
      h.clock.advance(1)
      assert.equal((await requestCode(email)).status, 200)
    })
  })
})

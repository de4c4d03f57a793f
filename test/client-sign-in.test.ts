import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { Courtside, type CourtsideError } from 'courtside-client'
import { harness } from './support/app.ts'
import { failsWith, recordRequests, startServer } from './support/client.ts'
import { listen } from './support/event-stream.ts'
import { newEmail, profile, queuedCode, readPayload } from './support/scenario.ts'

const h = harness()
let url: string

describe('sign-up and sign-in by the client', { timeout: 60_000 }, () => {
  before(async () => {
    url = await listen(h.app)
  })

  test('through the client, a user can sign up, use the account and delete the account', async () => {
    const { client, sent } = recordRequests({ url, language: 'en' })
    const email = newEmail()
    assert.equal(await client.signedIn(), false)
    assert.match((await client.requestOtp(profile(email))).message, /^If this address can sign in/)
    const result = await client.verifyOtp({ email, code: await queuedCode(h, email) })
    assert.deepEqual(Object.keys(result), ['access_token', 'is_new_user'])
    assert.equal(result.is_new_user, true)
    assert.equal(await client.signedIn(), true)

    const me = await client.me()
    assert.deepEqual([me.email, me.locale, me.game_level], [email, 'en', null])
    const levels = await client.gameLevels()
    assert.equal(levels.length, 8)
    assert.deepEqual((await client.assessLevel(levels[3]!.id)).game_level, levels[3])

    const { access_token } = await client.refresh()
    assert.notEqual(access_token, result.access_token)
    assert.equal((await client.me()).id, me.id)
    assert.equal(sent.at(-1)!.token, access_token)

    h.clock.advance(60_000)
    await client.requestOtp({ email })
    const code = await queuedCode(h, email, readPayload(access_token).sid)
    assert.match((await client.deleteAccount(code)).message, /deleted/)
    assert.equal(await client.signedIn(), false)
    await client.requestOtp({ email })
    assert.equal(sent.at(-1)!.token, undefined, 'the client keeps no token of a deleted account')
  })

  test('if the service refuses a call, the error has a status, an error code, the invalid fields and a wait', async () => {
    const client = new Courtside({ url, language: 'fr' })
    const email = newEmail()
    await assert.rejects(client.requestOtp({ email, first_name: 'Marie' }), (error: CourtsideError) => {
      assert.deepEqual([error.status, error.code], [422, 'validation_failed'])
      assert.deepEqual(Object.keys(error.errors), ['last_name', 'accept_cgu'])
      assert.equal(error.message, 'Le champ last_name est obligatoire. (et 1 erreur(s) de plus)')
      assert.equal(error.retryAfter, undefined)
      return true
    })
    await client.requestOtp({ email })
    await assert.rejects(client.requestOtp({ email }), (error: CourtsideError) => {
      assert.deepEqual([error.status, error.code, error.retryAfter], [429, 'wait', 60])
      assert.deepEqual(error.errors, {})
      return true
    })
    await assert.rejects(client.verifyOtp({ email, code: '12' }), failsWith(422, 'validation_failed'))
    await assert.rejects(client.me(), failsWith(401, 'unauthenticated'))
    await assert.rejects(client.refresh(), failsWith(401, 'unauthenticated'))
  })

  test('requestOtp returns the seconds of the Retry-After header, or undefined if the header is missing', async () => {
    for (const [headers, expected] of [
      [{ 'retry-after': '90' }, 90],
      [{}, undefined],
    ] as const) {
      const server = await startServer((_, response) => response.writeHead(200, headers).end('{"message":"Sent."}'))
      const result = await new Courtside({ url: server.url }).requestOtp({ email: newEmail() })
      assert.deepEqual(result, { message: 'Sent.', retryAfter: expected })
      await server.close()
    }
  })
})

import assert from 'node:assert/strict'
import { before, describe, type TestContext, test } from 'node:test'
import { Courtside, type CourtsideError, memoryStorage } from 'courtside-client'
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

  /** Starts a server whose code has the given parts, in order, and records the codes that it receives. */
  async function startCodeServer(t: TestContext, parts: string[]) {
    const codes: string[] = []
    let entered = 0
    const server = await startServer(async (request, response) => {
      const { code } = JSON.parse(Buffer.concat(await request.toArray()).toString())
      codes.push(code)
      if (code === parts[entered]) entered += 1
      else if (!parts.slice(0, entered).includes(code)) {
        return void response.writeHead(422).end(JSON.stringify({ message: 'Wrong.', code: 'otp_invalid' }))
      }
      if (entered === parts.length) {
        return void response.end(JSON.stringify({ access_token: 'a.b.c', is_new_user: false, message: 'Deleted.' }))
      }
      response.writeHead(422).end(JSON.stringify({ message: 'Now the next part.', code: 'otp_continue' }))
    })
    t.after(() => server.close())
    return { url: server.url, codes }
  }

  test('a code of two parts can be entered part by part, and the client asks for the next part', async t => {
    const server = await startCodeServer(t, ['4921', '0377'])
    const client = new Courtside({ url: server.url })
    const email = newEmail()
    const first = await client.verifyOtp({ email, code: '4921' })
    assert.deepEqual(first, { next_part: true, message: 'Now the next part.' })
    assert.equal(await client.signedIn(), false)
    await assert.rejects(client.verifyOtp({ email, code: '1111' }), failsWith(422, 'otp_invalid'))
    const last = await client.verifyOtp({ email, code: '0377' })
    assert.equal(last.next_part, undefined)
    assert.equal(last.access_token, 'a.b.c')
    assert.equal(await client.signedIn(), true)
  })

  for (const text of [
    '4921, then 0377',
    '4921 0377',
    '49210377',
    ' 4921, puis 0377\n',
    '４９２１ ０３７７',
    '49 21, 03 77',
  ]) {
    test(`all parts of a code can be entered in one text: ${JSON.stringify(text)}`, async t => {
      const server = await startCodeServer(t, ['4921', '0377'])
      const client = new Courtside({ url: server.url })
      await client.verifyOtp({ email: newEmail(), code: text })
      assert.equal(await client.signedIn(), true)
      assert.deepEqual(server.codes, ['4921', '0377'])
    })
  }

  test('if the first part of a text signs in, the client does not send the rest, and a wrong part ends the attempt', async t => {
    const one = await startCodeServer(t, ['4921'])
    await new Courtside({ url: one.url }).verifyOtp({ email: newEmail(), code: '4921 0377' })
    assert.deepEqual(one.codes, ['4921'])
    const three = await startCodeServer(t, ['4921', '0377', '1580'])
    const client = new Courtside({ url: three.url })
    const entered = await client.verifyOtp({ email: newEmail(), code: '4921, 0377' })
    assert.equal(entered.next_part, true)
    await assert.rejects(client.verifyOtp({ email: newEmail(), code: '4921 9999 1580' }), failsWith(422, 'otp_invalid'))
    assert.deepEqual(three.codes, ['4921', '0377', '4921', '9999'])
  })

  test('a text that cannot be a code is sent as it is, in one request', async t => {
    const server = await startCodeServer(t, ['4921'])
    const client = new Courtside({ url: server.url })
    for (const code of ['12', '', '123456', '1234567890123456', 'no code']) {
      await assert.rejects(client.verifyOtp({ email: newEmail(), code }), failsWith(422, 'otp_invalid'))
    }
    assert.deepEqual(server.codes, ['12', '', '123456', '1234567890123456', 'no code'])
  })

  test('an account is deleted after all parts of its code, and only then the client signs out', async t => {
    const server = await startCodeServer(t, ['4921', '0377'])
    const storage = memoryStorage()
    await storage.set('token', 'a.b.c')
    const client = new Courtside({ url: server.url, storage })
    assert.equal((await client.deleteAccount('4921')).next_part, true)
    assert.equal(await client.signedIn(), true)
    assert.equal((await client.deleteAccount('0377')).message, 'Deleted.')
    assert.equal(await client.signedIn(), false)
  })

  test('resendOtp repeats the whole body of the last request', async t => {
    const { client, sent } = recordRequests({ url })
    await assert.rejects(client.resendOtp(), /Call requestOtp/)
    const bodies: unknown[] = []
    const server = await startServer(async (request, response) => {
      bodies.push(JSON.parse(Buffer.concat(await request.toArray()).toString()))
      response.end('{"message":"Sent."}')
    })
    t.after(() => server.close())
    const resender = new Courtside({ url: server.url })
    const body = profile(newEmail())
    await resender.requestOtp(body)
    assert.equal((await resender.resendOtp()).message, 'Sent.')
    assert.deepEqual(bodies, [body, body])
    assert.deepEqual(sent, [])
  })

  test('a logout with forget leaves no last token, and a plain logout leaves it', async t => {
    for (const forget of [true, false]) {
      const bodies: string[] = []
      const server = await startServer(async (request, response) => {
        bodies.push(Buffer.concat(await request.toArray()).toString())
        response.end('{"message":"Bye."}')
      })
      t.after(() => server.close())
      const storage = memoryStorage()
      await storage.set('token', 'a.b.c')
      await storage.set('last_token', 'old.b.c')
      await new Courtside({ url: server.url, storage }).logout({ forget })
      assert.deepEqual(bodies, [forget ? '{"forget":true}' : '{}'])
      assert.equal(await storage.get('token'), null)
      assert.equal(await storage.get('last_token'), forget ? null : 'a.b.c')
    }
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

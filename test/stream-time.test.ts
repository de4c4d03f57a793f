import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { createTokens } from '../src/auth/jwt.ts'
import { harness } from './support/app.ts'
import { listen, openStream } from './support/event-stream.ts'
import { makeUser } from './support/factories.ts'
import { readPayload } from './support/scenario.ts'

const h = harness()
let address: string

describe('the times of a stream', () => {
  before(async () => {
    address = await listen(h.app)
  })
  test('a stream sends a heartbeat every 20 s', async () => {
    const { token } = await makeUser(h)
    const stream = await openStream(address, token)
    await stream.heartbeat()
    const first = performance.now()
    await stream.heartbeat()
    const elapsedMs = performance.now() - first
    assert.ok(elapsedMs > 19_000 && elapsedMs < 22_000, `${elapsedMs} ms`)
    stream.close()
  })

  test('a stream ends when the exp of its token is reached', async () => {
    const { token } = await makeUser(h)
    const { sid, sub, iat } = readPayload(token)
    // The token expires in two seconds.
    const claims = { sub: Number(sub), sid, generation: 1, iat, nbf: iat, exp: iat + 2 }
    const stream = await openStream(address, createTokens(h.ctx.keys).sign(claims))
    assert.equal((await stream.next()).event, 'sync')
    h.clock.advance(2_000)
    assert.equal(await stream.ended(), true)
  })
})

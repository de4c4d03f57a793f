import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createTokens } from '../src/auth/jwt.ts'
import { deriveKeys } from '../src/keys.ts'
import { JWT_SECRET } from './support/app.ts'

describe('rotation of JWT_SECRET', () => {
  const now = new Date('2026-11-28T10:00:00Z')
  const claims = {
    sub: 7,
    sid: '6055822d-201b-43c9-b0ca-85beca72ec45',
    generation: 1,
    iat: now.getTime() / 1000,
    nbf: now.getTime() / 1000,
    exp: now.getTime() / 1000 + 3600,
  }
  const older = deriveKeys([JWT_SECRET])
  const rotated = deriveKeys(['qL3vXr8tBn2mKs7wPf4zHc9yJd6gVa5e', JWT_SECRET])
  const newer = deriveKeys(['qL3vXr8tBn2mKs7wPf4zHc9yJd6gVa5e'])

  test('a token that any of the secrets signed is accepted, and new tokens are signed with the first secret', () => {
    const old = createTokens(older).sign(claims)
    const fresh = createTokens(rotated).sign(claims)
    assert.deepEqual(createTokens(rotated).read(old, now), claims)
    assert.deepEqual(createTokens(newer).read(fresh, now), claims)
    assert.equal(createTokens(newer).read(old, now), undefined)
  })

  test('after a rotation, the service accepts sign-in codes that were hashed and sealed with the old secret', () => {
    const id = claims.sid
    assert.equal(rotated.matches(older.mac(id, '1234'), id, '1234'), true)
    assert.equal(rotated.matches(older.mac(id, '1234'), id, '1235'), false)
    assert.equal(rotated.open(id, older.seal(id, '1234')), '1234')
    assert.equal(newer.open(id, older.seal(id, '1234')), undefined)
  })

  test('a sealed code cannot be opened with the id of another row', () => {
    assert.equal(older.open('another row', older.seal(claims.sid, '1234')), undefined)
  })
})

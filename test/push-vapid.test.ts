import assert from 'node:assert/strict'
import { createECDH } from 'node:crypto'
import { test } from 'node:test'
import { decodeJwt, decodeProtectedHeader, importJWK, jwtVerify } from 'jose'
import { createVapid } from '../src/reach/vapid.ts'

const NOW = new Date('2026-11-28T10:00:00.000Z')
const HOUR_MS = 3_600_000
const ORIGIN = 'https://fcm.googleapis.com'
const SUBJECT = 'mailto:admin@club.example'
const KEYS = [1, 2].map(makeKey)

function makeKey() {
  const pair = createECDH('prime256v1')
  pair.generateKeys()
  return { privateKey: pair.getPrivateKey('base64url'), publicKey: pair.getPublicKey('base64url') }
}

function read(header: string | undefined) {
  const [, token, key] = /^vapid t=(\S+), k=(\S+)$/.exec(header ?? '') ?? []
  return { token: token!, key: key! }
}

test('a token is signed with the private key of its public key, for the origin, for 12 hours', async () => {
  const vapid = createVapid(
    KEYS.map(({ privateKey }) => privateKey),
    SUBJECT,
  )
  assert.deepEqual(
    vapid.publicKeys,
    KEYS.map(({ publicKey }) => publicKey),
  )
  for (const { publicKey } of KEYS) {
    const { token, key } = read(vapid.authorize(publicKey, ORIGIN, NOW))
    assert.equal(key, publicKey)
    const point = Buffer.from(key, 'base64url')
    const [x, y] = [point.subarray(1, 33), point.subarray(33)].map(part => part.toString('base64url'))
    const jwk = await importJWK({ kty: 'EC', crv: 'P-256', x: x!, y: y! }, 'ES256')
    const { payload } = await jwtVerify(token, jwk, { audience: ORIGIN, currentDate: NOW })
    assert.deepEqual(payload, { aud: ORIGIN, exp: NOW.getTime() / 1_000 + 12 * 3_600, sub: SUBJECT })
    assert.deepEqual(decodeProtectedHeader(token), { alg: 'ES256', typ: 'JWT' })
  }
})

test('a token is used again for an hour, for the same key and origin only', () => {
  const vapid = createVapid(
    KEYS.map(({ privateKey }) => privateKey),
    SUBJECT,
  )
  const [one, other] = KEYS.map(({ publicKey }) => publicKey) as [string, string]
  const first = vapid.authorize(one, ORIGIN, NOW)
  assert.equal(vapid.authorize(one, ORIGIN, new Date(NOW.getTime() + HOUR_MS - 1)), first)
  assert.notEqual(vapid.authorize(other, ORIGIN, NOW), first)
  assert.notEqual(vapid.authorize(one, 'https://web.push.apple.com', NOW), first)
  const later = read(vapid.authorize(one, ORIGIN, new Date(NOW.getTime() + HOUR_MS)))
  assert.equal(decodeJwt(later.token).exp, NOW.getTime() / 1_000 + 13 * 3_600)
})

test('a clock that was moved back makes a new token, so no token is valid for more than 24 hours', () => {
  const vapid = createVapid([KEYS[0]!.privateKey], SUBJECT)
  const [{ publicKey }] = KEYS as [(typeof KEYS)[number]]
  vapid.authorize(publicKey, ORIGIN, NOW)
  const earlier = new Date(NOW.getTime() - 20 * HOUR_MS)
  const { exp } = decodeJwt(read(vapid.authorize(publicKey, ORIGIN, earlier)).token)
  assert.equal(exp, earlier.getTime() / 1_000 + 12 * 3_600)
})

test('a key that the process does not have signs nothing', () => {
  assert.equal(createVapid([KEYS[0]!.privateKey], SUBJECT).authorize(KEYS[1]!.publicKey, ORIGIN, NOW), undefined)
  assert.deepEqual(createVapid([], SUBJECT).publicKeys, [])
})

test('the tokens of many origins are bounded, and each origin still gets a valid token', () => {
  const vapid = createVapid([KEYS[0]!.privateKey], SUBJECT)
  for (let index = 0; index < 1_500; index += 1) {
    const origin = `https://host${index}.notify.windows.com`
    const { token } = read(vapid.authorize(KEYS[0]!.publicKey, origin, NOW))
    assert.equal(decodeJwt(token).aud, origin)
  }
})

import assert from 'node:assert/strict'
import { createHmac, createSign, generateKeyPairSync } from 'node:crypto'
import { describe, test } from 'node:test'
import { harness, JWT_SECRET } from './support/app.ts'
import { readPayload, signUp } from './support/scenario.ts'

const h = harness()

function part(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

function readHeader(token: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(token.split('.')[0]!, 'base64url').toString())
}

/** Signs any header and payload, by default with the secret of the service. */
function forge(header: unknown, payload: unknown, secret: string | Buffer = JWT_SECRET, hash = 'sha256'): string {
  const signed = `${part(header)}.${part(payload)}`
  return `${signed}.${createHmac(hash, secret).update(signed).digest('base64url')}`
}

async function getStatus(authorization: string | undefined): Promise<number> {
  const answer = await h.call('GET', '/api/v1/auth/me', {
    headers: authorization === undefined ? {} : { authorization },
  })
  if (answer.status === 401) {
    assert.equal(answer.text, '{"message":"Unauthenticated.","code":"unauthenticated"}')
    const sent = /^bearer +\S/i.test(authorization ?? '')
    assert.equal(answer.headers['www-authenticate'], sent ? 'Bearer error="invalid_token"' : 'Bearer')
  }
  return answer.status
}

describe('200', () => {
  test('the service accepts its own token, and a token that the test signs with the same claims and secret', async () => {
    const { token } = await signUp(h)
    assert.equal(await getStatus(`Bearer ${token}`), 200)
    assert.equal(await getStatus(`bearer   ${token}`), 200)
    assert.equal(await getStatus(`Bearer ${forge(readHeader(token), readPayload(token))}`), 200)
  })
})

describe('401', () => {
  test('a request without a Bearer token, or with the token in another place, gets 401', async () => {
    const { token } = await signUp(h)
    for (const authorization of [
      undefined,
      '',
      'Bearer',
      `Basic ${token}`,
      token,
      `Bearer ${token} ${token}`,
      `Bearer ${token},`,
    ]) {
      assert.equal(await getStatus(authorization), 401, String(authorization))
    }
    assert.equal((await h.call('GET', `/api/v1/auth/me?token=${token}&access_token=${token}`)).status, 401)
    assert.equal((await h.call('GET', '/api/v1/auth/me', { headers: { cookie: `token=${token}` } })).status, 401)
  })

  test('a token without one of its claims, or with a claim of a wrong type or value, is refused with 401', async () => {
    const { token } = await signUp(h)
    const header = readHeader(token)
    const claims = readPayload(token)
    for (const name of Object.keys(claims)) {
      for (const value of [undefined, null, '', 0, -1, 1.5, true, [], {}, 'x', [claims[name]], '1e9', '9'.repeat(20)]) {
        if (JSON.stringify(value) === JSON.stringify(claims[name])) continue
        assert.equal(await getStatus(`Bearer ${forge(header, { ...claims, [name]: value })}`), 401, `${name}: ${value}`)
      }
    }
    for (const wrong of [
      { sub: Number(claims.sub) },
      { sub: `${claims.sub}0` },
      { iss: 'elsewhere' },
      { iat: claims.iat + 3600, nbf: claims.nbf + 3600, exp: claims.exp + 3600 },
      { iat: claims.iat + 61 },
      { nbf: claims.nbf + 61 },
      { aud: 'another service' },
      { aud: 'courtside' },
      { aud: null },
      { sid: '-'.repeat(36), jti: `${'-'.repeat(36)}.1` },
      { exp: claims.iat },
      { jti: `${claims.sid}.2` },
      { jti: `${claims.sid}.01` },
      { sid: '00000000-0000-4000-8000-000000000000', jti: '00000000-0000-4000-8000-000000000000.1' },
    ]) {
      assert.equal(await getStatus(`Bearer ${forge(header, { ...claims, ...wrong })}`), 401, JSON.stringify(wrong))
    }
  })

  test('a token whose header names another algorithm or key is refused with 401', async () => {
    const { token } = await signUp(h)
    const header = readHeader(token)
    const claims = readPayload(token)
    const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    const unsigned = `${part({ ...header, alg: 'none' })}.${part(claims)}.`
    const rsa = `${part({ ...header, alg: 'RS256' })}.${part(claims)}`
    const jwk = { kty: 'oct', k: Buffer.from('mine').toString('base64url') }
    const forged = [
      unsigned,
      `${part({ ...header, alg: 'None' })}.${part(claims)}.`,
      `${rsa}.${createSign('sha256').update(rsa).sign(privateKey, 'base64url')}`,
      forge({ ...header, alg: 'RS256' }, claims, publicKey.export({ type: 'spki', format: 'pem' })),
      forge({ ...header, alg: 'HS384' }, claims, JWT_SECRET, 'sha384'),
      forge({ ...header, alg: 'HS512' }, claims, JWT_SECRET, 'sha512'),
      forge({ ...header, alg: 'hs256' }, claims),
      forge({ ...header, jwk }, claims, 'mine'),
      forge({ ...header, jwk }, claims),
      forge({ ...header, jku: 'http://127.0.0.1/keys' }, claims),
      forge({ ...header, crit: ['exp'] }, claims),
      forge({ ...header, crit: ['b64'], b64: false }, claims),
      forge({ ...header, typ: 'dpop+jwt' }, claims),
      forge({ ...header, typ: 'JWE' }, claims),
      forge({ ...header, typ: undefined }, claims),
      forge({ ...header, kid: undefined }, claims),
      forge({ ...header, kid: '../../dev/null' }, claims, ''),
      forge({ ...header, kid: ['x'] }, claims),
      forge({ ...header, kid: '__proto__' }, claims),
      forge(header, claims, ''),
      forge(header, [claims]),
      forge([header], claims),
      forge(null, claims),
    ]
    for (const bad of forged) assert.equal(await getStatus(`Bearer ${bad}`), 401, bad)
  })

  test('a token whose header or payload is not UTF-8 is refused with 401', async () => {
    const { token } = await signUp(h)
    const [header, claims] = [readHeader(token), readPayload(token)]
    // The byte 0xff never occurs in UTF-8. In both cases it is in a JSON string.
    const broken = (value: unknown) =>
      Buffer.concat([Buffer.from(JSON.stringify(value).slice(0, -2)), Buffer.from([0xff, 0x22, 0x7d])])
    const sign = (first: Buffer, second: Buffer) => {
      const signed = `${first.toString('base64url')}.${second.toString('base64url')}`
      return `${signed}.${createHmac('sha256', JWT_SECRET).update(signed).digest('base64url')}`
    }
    const [goodHeader, goodClaims] = [header, claims].map(value => Buffer.from(JSON.stringify(value)))
    assert.equal(await getStatus(`Bearer ${sign(goodHeader!, goodClaims!)}`), 200)
    const note = { ...claims, note: 'x' }
    assert.equal(await getStatus(`Bearer ${sign(goodHeader!, Buffer.from(JSON.stringify(note)))}`), 200)
    assert.equal(await getStatus(`Bearer ${sign(goodHeader!, broken(note))}`), 401)
    assert.equal(await getStatus(`Bearer ${sign(broken(header), goodClaims!)}`), 401)
  })

  test('of the four spellings of a signature, which differ only in unused bits, only the spelling of the service is accepted', async () => {
    const { token } = await signUp(h)
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    const last = alphabet.indexOf(token.at(-1)!)
    const twins = [0, 1, 2, 3].map(bits => token.slice(0, -1) + alphabet[(last & ~3) | bits])
    const statuses = await Promise.all(twins.map(twin => getStatus(`Bearer ${twin}`)))
    assert.deepEqual(
      statuses,
      twins.map(twin => (twin === token ? 200 : 401)),
    )
  })

  test('a token that is cut, doubled or padded, or that has one flipped bit, is refused with 401', async () => {
    const { token } = await signUp(h)
    const [header, claims, signature] = token.split('.') as [string, string, string]
    const flipped = Buffer.from(signature, 'base64url')
    flipped[0]! ^= 1
    for (const bad of [
      `${header}.${claims}`,
      `${header}.${claims}.`,
      `.${claims}.${signature}`,
      `${header}..${signature}`,
      `${header}.${claims}.${signature}.${signature}`,
      `${header}.${claims}.${flipped.toString('base64url')}`,
      `${header}.${claims}.${signature.slice(0, -2)}`,
      'x'.repeat(7000),
      '\u00e9.\u00e9.\u00e9',
    ]) {
      assert.equal(await getStatus(`Bearer ${bad}`), 401, bad)
    }
  })

  test('the token of a deleted user is refused with 401', async () => {
    const { email, token } = await signUp(h)
    await h.database.sql`delete from app_user where email = ${email}`
    assert.equal(await getStatus(`Bearer ${token}`), 401)
  })
})

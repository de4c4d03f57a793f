import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { ConfigError, readConfig } from '../src/config.ts'
import { newSecret } from '../src/secrets.ts'
import { findWeakness } from '../src/weak-secrets.ts'

const GOOD = {
  DATABASE_URL: 'postgres://db.example/courtside',
  SMTP_URL: 'smtp://mail.example',
  JWT_SECRET: 'kuC4vBnmNwzIEYxX0mVQJ1y7s2dGgqLh',
  INTAKE_KEYS: 'Zt8RkPp3aWvYxq1LmN7oBc5dEf9gHiJk',
}

function readFaults(env: Record<string, string>): string[] {
  try {
    readConfig({ ...GOOD, ...env })
    return []
  } catch (error) {
    assert.ok(error instanceof ConfigError)
    return error.faults
  }
}

// The secrets of at least 32 bytes in the public list of jwt_tool (ticarpi/jwt_tool, jwt-common.txt).
const JWT_TOOL = [
  '012345678901234567890123456789XY',
  '12345678901234567890123456789012',
  '61306132616264382D363136322D343163332D383364362D316366353539623436616663',
  '61306132616264382d363136322d343163332d383364362d316366353539623436616663',
  '872e4e50ce9990d8b041330c47c9ddd11bec6b503ae9386a99da8584e9bb12c4',
  'A43CC200A1BD292682598DA42DAA9FD14589F3D8BF832FFA206BE775259EE1EA',
  'C2A4EB068AF8ABEF18D80B1689C7D785',
  'GQDstcKsx0NHjPOuXOYg5MbeJ1XT0uFiwDVvVBrk',
  'R9MyWaEoyiMYViVWo8Fk4TUGWiSoaW6U1nOqXri8_XU',
  'Secret key. You can use `mix guardian.gen.secret` to get one',
  'YoUR sUpEr S3krEt 1337 HMAC kEy HeRE',
  'a43cc200a1bd292682598da42daa9fd14589f3d8bf832ffa206be775259ee1ea',
  'c2a4eb068af8abef18d80b1689c7d785',
  'fe1a1915a379f3be5394b64d14794932',
  'gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr9C',
  'my_very_long_and_safe_secret_key',
]

// Secrets from the same list that are too short.
const SHORT = [
  'secret',
  'your-256-bit-secret',
  'CL4V3_SUP3R_S3CR3T4',
  'jwt-secret',
  'password',
  'token',
  '12345',
  '...',
]

const PLACEHOLDERS = [
  'a-string-secret-at-least-256-bits-long',
  'REPLACE_ME_WITH_A_LONG_RANDOM_STRING',
  '<openssl rand -base64 32>....................',
  '<random_string_at_least_32_characters_long>',
  'put-a-real-key-here-before-deploying',
  'TODO_set_me_before_going_live_please',
  'use-a-long-random-value-in-real-life',
  'this-is-a-very-long-key-for-signing-tokens',
  'REMPLACER_PAR_UNE_CLE_ALEATOIRE_LONGUE',
  'the-quick-brown-fox-jumps-over-the-lazy-dog',
  '00112233445566778899aabbccddeeff',
  'abcdefghijklmnopqrstuvwxyz0123456789',
  'supersecretkeythatshouldbechangedinproduction',
  'changeme-changeme-changeme-changeme',
  'your-256-bit-secret-your-256-bit-secret',
  'a'.repeat(40),
  'deadbeef'.repeat(8),
  'x7Kp2mQ9'.repeat(4),
  `${'x7Kp2mQ9'.repeat(4)}!`,
  '0123456789abcdef0123456789abcdef',
  '0123456789ABCDEF0123456789ABCDEF',
  '9876543210zyxwvutsrqponmlkjihgfedcba',
  'qwertyuiopasdfghjklzxcvbnm123456',
  '1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik9ol0p',
  'correct horse battery staple and more',
  'This_Should_be_32_characters_long',
  'CL4V3_SUP3R_S3CR3T4_C4TR4L_G4RD3N',
  'my-sup3r-s3cr3t-k3y-f0r-d3v3l0pm3nt',
  'Ch4ng3M3-Ch4ng3M3-please-1234567',
  'pLaCeHoLdEr_for_the_signing_key_1',
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a variable that a deployment script did not replace.
  '${JWT_SIGNING_KEY_OF_THE_CLUSTER_A}',
  '{{ vault.courtside.signing_token }}',
  'courtside-prod-signing-token-2026-11',
  '0x7365637265747365637265747365637265747365637265747365637265747365',
  Buffer.from('replace-me-with-something-long-and-random').toString('hex'),
  Buffer.from('replace-me-with-something-long-and-random').toString('base64'),
  '$$$$$$$$$$$$$$$$$$$$$$$$$$$$$$$$',
  'thisisaverylongkeythatnobodywillguess',
  'correcthorsebatterystaplecorrect',
]

// Keys of tutorials about Spring and JWT, which many public repositories contain. The first four are the hexadecimal
// form of texts.
const TUTORIAL_KEYS = [
  '5367566B59703373367639792F423F4528482B4D6251655468576D5A71347437',
  '404E635266556A586E3272357538782F413F4428472B4B6250645367566B5970',
  '357538782F413F4428472B4B6250655367566B59703373367639792442264529',
  '586B633834416E396D7436753879382F423F4428482B4C6250655367566B5970',
  '3cfa76ef14937c1c0ea519f8fc057a80fcd04a7420f8e8bcd0a7567c272e007b',
  'AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr9Z1CAow',
]

// The examples of RFC 4122 and RFC 9562, the two special uuids, and examples of libraries and API documents.
const UUIDS = [
  'f81d4fae-7dec-11d0-a765-00a0c91e6bf6',
  'C232AB00-9414-11EC-B3C8-9F6BDECED846',
  '5df41881-3aed-3515-88a7-2f4a814cf09e',
  '919108f7-52d1-4320-9bac-f847db4148a8',
  '919108F752D143209BACF847DB4148A8',
  '2ed6657d-e927-568b-95e1-2665a8aea6a2',
  '1EC9414C-232A-6B00-B3C8-9F6BDECED846',
  '017F22E2-79B0-7CC3-98C4-DC0C0C07398F',
  '2489E9AD-2EE2-8E00-8EC9-32D5F69181C0',
  '6ba7b810-9dad-11d1-80b4-00c04fd430c8',
  '00000000-0000-0000-0000-000000000000',
  'ffffffff-ffff-ffff-ffff-ffffffffffff',
  '123e4567-e89b-12d3-a456-426614174000',
  '550e8400-e29b-41d4-a716-446655440000',
  '3fa85f64-5717-4562-b3fc-2c963f66afa6',
]

/** Digests of a word in hexadecimal and base64. The command `echo` adds a line break to its word. */
const DIGESTS = ['', 'password', 'Password', 'test', 'admin', '123456', 'secret\n', 'hello'].flatMap(word =>
  ['md5', 'sha1', 'sha256', 'sha512'].flatMap(algorithm => {
    const digest = createHash(algorithm).update(word).digest()
    const notations = [digest.toString('hex'), digest.toString('hex').toUpperCase(), digest.toString('base64')]
    return notations.filter(text => text.length >= 32)
  }),
)

describe('a published secret or a placeholder', () => {
  for (const secret of [...JWT_TOOL, ...SHORT, ...PLACEHOLDERS, ...TUTORIAL_KEYS, ...UUIDS, ...DIGESTS]) {
    test(`JWT_SECRET and INTAKE_KEYS refuse "${secret}"`, () => {
      for (const name of ['JWT_SECRET', 'INTAKE_KEYS'] as const) {
        for (const value of [secret, `${GOOD[name]},${secret}`]) {
          const faults = readFaults({ [name]: value })
          assert.equal(faults.length, 1)
          assert.ok(faults[0]!.startsWith(`${name}: `))
          assert.ok(!faults[0]!.includes(secret) || secret.length < 10)
        }
      }
    })
  }

  test('METRICS_TOKEN refuses the same secrets', () => {
    const short = ['0123456789abcdef', 'aaaaaaaaaaaaaaaa', 'metrics-secret-1', 'prometheus-metrics', 'admin-admin-1234']
    const digest = createHash('md5').update('password').digest('base64')
    for (const secret of [...JWT_TOOL, ...PLACEHOLDERS, ...TUTORIAL_KEYS, ...UUIDS, ...short, digest]) {
      assert.equal(readFaults({ METRICS_TOKEN: secret }).length, 1, secret)
    }
    assert.deepEqual(readFaults({ METRICS_TOKEN: 'Qm4tWz7rKx2vNp9s' }), [])
  })
})

describe('a random secret', () => {
  /** Returns pseudo-random bytes that are the same in every run, so a rare refusal cannot make the test flaky. */
  const repeatable = (count: number, index: number) =>
    createHash('shake256', { outputLength: count }).update(`weak-secrets.test ${index}`).digest()

  test('of 10,000 random secrets in each usual notation, none is refused', () => {
    for (let index = 0; index < 10_000; index += 1) {
      const bytes = repeatable(32, index)
      const letters = [...bytes].map(byte => String.fromCharCode(97 + (byte % 26))).join('')
      for (const secret of [
        bytes.toString('base64'),
        bytes.toString('base64url'),
        bytes.toString('hex'),
        bytes.toString('hex').toUpperCase(),
        bytes.subarray(0, 16).toString('hex'),
        bytes.subarray(0, 24).toString('base64'),
        Buffer.from(bytes.toString('hex')).toString('base64'),
        letters,
        letters.slice(0, 20),
      ]) {
        assert.equal(findWeakness(secret), undefined, secret)
      }
      // METRICS_TOKEN may have 16 bytes.
      for (const token of [bytes.subarray(0, 8).toString('hex'), bytes.subarray(0, 12).toString('base64')])
        assert.equal(findWeakness(token), undefined, token)
    }
  })

  test('a random token of 12 bytes is accepted although its bytes happen to be a text with a blank', () => {
    for (const token of ['SV9KaFw4eE5UIDZ8', 'KmxbcXBSLVZCalkK']) assert.equal(findWeakness(token), undefined, token)
  })

  test('a secret of 100,000 random characters is accepted, and one of 100,000 equal characters is refused', () => {
    assert.equal(findWeakness(repeatable(75_000, 0).toString('base64')), undefined)
    for (const part of ['a', '<', 'x7Kp2mQ9']) assert.notEqual(findWeakness(part.repeat(100_000)), undefined)
  })

  test('`courtside secret`, openssl and uuids give secrets that are accepted', () => {
    for (let round = 0; round < 200; round += 1) {
      const secrets = [newSecret(), randomBytes(32).toString('hex'), randomUUID()]
      for (const JWT_SECRET of secrets) assert.deepEqual(readFaults({ JWT_SECRET }), [])
    }
    for (const args of [
      ['-base64', '32'],
      ['-hex', '32'],
    ]) {
      const secret = execFileSync('openssl', ['rand', ...args], { encoding: 'utf8' }).trim()
      assert.deepEqual(readFaults({ JWT_SECRET: secret, INTAKE_KEYS: secret, METRICS_TOKEN: secret }), [])
    }
  })
})

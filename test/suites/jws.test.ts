import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { describe, test } from 'node:test'
import { createTokens } from '../../src/auth/jwt.ts'
import { harness, JWT_SECRET } from '../support/app.ts'
import { EVENTS } from '../support/games.ts'
import { signUp } from '../support/scenario.ts'
import { describeAnswer, readSuite, skip } from '../support/suites.ts'

type Signature = { protected?: string; signature: string }
type Example = {
  input: { payload: string; key: { kid?: string; k: string } }
  output: {
    compact?: string
    json?: { payload?: string; signatures: Signature[] }
    json_flat?: { payload?: string } & Signature
  }
}

const FILES = [
  'jws_4_1.rsa_v15_signature',
  'jws_4_3.ecdsa_signature',
  'jws_4_4.hmac-sha2_integrity_protection',
  'jws_4_5.signature_with_detached_content',
  'jws_4_6.protecting_specific_header_fields',
  'jws_4_7.protecting_content_only',
  'jws_4_8.multiple_signatures',
  'rfc7797_4.2.hmac-sha2_b64_false',
  'rfc7797_hmac-sha2_b64_false',
]

const read = (name: string) => readSuite<Example>(`jws-rfc7520/${name}.json`)

describe('the JWS examples of RFC 7520 and RFC 7797', { skip }, () => {
  const h = harness()

  for (const name of FILES) {
    test(`the service accepts no form of ${name} as a token`, async () => {
      const forms = writeForms(read(name))
      assert.ok(forms.length >= 4)
      for (const form of forms) {
        for (const [method, url] of [
          ['GET', '/api/v1/auth/me'],
          ['POST', '/api/v1/auth/refresh'],
          ['POST', '/api/v1/auth/logout'],
          ['POST', EVENTS],
        ] as const) {
          const answer = await h.call(method, url, { headers: { authorization: `Bearer ${form}` } })
          assert.equal(answer.status, 401, `${method} ${url} ${describeAnswer(form, answer)}`)
          assert.equal(
            answer.text,
            '{"message":"Unauthenticated.","code":"unauthenticated"}',
            describeAnswer(form, answer),
          )
        }
      }
    })

    test(`no form of ${name} is accepted as a token even if the key of this example is a signing key of the service`, () => {
      const example = read(name)
      for (const { kid = 'none', k } of [example.input.key].flat()) {
        if (k === undefined) continue
        const keys = { ...h.ctx.keys, signing: [{ id: kid, secret: Buffer.from(k, 'base64url') as unknown as string }] }
        for (const form of writeForms(example))
          assert.equal(createTokens(keys).read(form, h.clock.now()), undefined, form)
      }
    })
  }

  test('the tokens of the service have an HS256 signature like the example in RFC 7520 §4.4', async () => {
    const { input, output } = read('jws_4_4.hmac-sha2_integrity_protection')
    assert.equal(verify(output.compact!, Buffer.from(input.key.k, 'base64url')), input.payload)
    assert.equal(verify(output.compact!, Buffer.from(JWT_SECRET)), undefined)
    const { token } = await signUp(h)
    assert.equal(JSON.parse(verify(token, Buffer.from(JWT_SECRET))!).iss, 'courtside')
  })
})

/**
 * Returns every form of an example that fits into an HTTP header: the RFC's own forms, and compact tokens made from
 * them.
 */
function writeForms({ output: { compact, json, json_flat: flat } }: Example): string[] {
  const signatures = [...(json?.signatures ?? []), ...(flat ? [flat] : [])]
  const joined = signatures.map(({ protected: head = '', signature }) => `${head}.${json?.payload ?? ''}.${signature}`)
  const objects = [json, flat].filter(form => form !== undefined).map(form => JSON.stringify(form))
  const encoded = objects.map(form => Buffer.from(form).toString('base64url'))
  return [...new Set([compact, ...joined, ...objects, ...encoded].filter(form => form !== undefined))]
}

/**
 * Verifies a token as RFC 7515 describes, without a library.
 * @returns the payload, or undefined if the signature is wrong
 */
function verify(compact: string, key: Buffer): string | undefined {
  const [head, payload, signature] = compact.split('.')
  const mac = createHmac('sha256', key).update(`${head}.${payload}`).digest('base64url')
  return mac === signature ? Buffer.from(payload!, 'base64url').toString('utf8') : undefined
}

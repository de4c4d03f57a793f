import assert from 'node:assert/strict'
import { createECDH, randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import ece from 'http_ece'
import {
  deriveContentKeys,
  encrypt,
  MAX_PLAINTEXT_BYTES,
  readAuthSecret,
  readPublicKey,
} from '../src/reach/encryption.ts'

const decode = (text: string) => Buffer.from(text, 'base64url')

// The intermediate values of RFC 8291, appendix A.
const VECTOR = {
  plaintext: 'V2hlbiBJIGdyb3cgdXAsIEkgd2FudCB0byBiZSBhIHdhdGVybWVsb24',
  senderPublic: 'BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8',
  senderPrivate: 'yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw',
  receiverPublic: 'BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4',
  receiverPrivate: 'q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94',
  salt: 'DGv6ra1nlYgDCS1FRnbzlw',
  auth: 'BTBZMqHH6r4Tts7J_aSIgg',
  sharedSecret: 'kyrL1jIIOHEzg3sM2ZWRHDRB62YACZhhSlknJ672kSs',
  key: 'oIhVW04MRdy2XN9CiKLxTg',
  nonce: '4h_95klXJ5E_qnoN',
  message:
    'DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBr' +
    'u3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN',
}

describe('the vectors of RFC 8291, appendix A', () => {
  test('the message has the bytes of the vector', () => {
    const keys = { p256dh: readPublicKey(VECTOR.receiverPublic)!, auth: readAuthSecret(VECTOR.auth)! }
    const random = { salt: decode(VECTOR.salt), privateKey: decode(VECTOR.senderPrivate) }
    assert.equal(encrypt(decode(VECTOR.plaintext), keys, random).toString('base64url'), VECTOR.message)
  })

  test('the content key and the nonce are those of the vector', () => {
    const receiver = createECDH('prime256v1')
    receiver.setPrivateKey(decode(VECTOR.receiverPrivate))
    const sharedSecret = receiver.computeSecret(decode(VECTOR.senderPublic))
    assert.equal(sharedSecret.toString('base64url'), VECTOR.sharedSecret)
    const { key, nonce } = deriveContentKeys(sharedSecret, {
      auth: decode(VECTOR.auth),
      salt: decode(VECTOR.salt),
      receiver: decode(VECTOR.receiverPublic),
      sender: decode(VECTOR.senderPublic),
    })
    assert.deepEqual([key.toString('base64url'), nonce.toString('base64url')], [VECTOR.key, VECTOR.nonce])
  })
})

describe('a message', () => {
  const browser = createECDH('prime256v1')
  const p256dh = browser.generateKeys()
  const auth = randomBytes(16)
  const open = (message: Buffer) =>
    ece.decrypt(message, { version: 'aes128gcm', privateKey: browser, authSecret: auth })

  test('is read by another library, whatever its bytes and its length are', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: MAX_PLAINTEXT_BYTES }), bytes => {
        assert.deepEqual(open(encrypt(Buffer.from(bytes), { p256dh, auth })), Buffer.from(bytes))
      }),
      { numRuns: 100, examples: [[new Uint8Array(0)], [new Uint8Array(MAX_PLAINTEXT_BYTES)]] },
    )
  })

  test('of the maximum length has 4,096 bytes after the encryption, and a longer one is refused', () => {
    assert.equal(encrypt(Buffer.alloc(MAX_PLAINTEXT_BYTES), { p256dh, auth }).length, 4_096)
    assert.throws(() => encrypt(Buffer.alloc(MAX_PLAINTEXT_BYTES + 1), { p256dh, auth }), RangeError)
  })

  test('has a new key and a new salt each time', () => {
    const [one, other] = [1, 2].map(() => encrypt(Buffer.from('same'), { p256dh, auth }))
    assert.notDeepEqual(one!.subarray(0, 16), other!.subarray(0, 16))
    assert.notDeepEqual(one!.subarray(21, 86), other!.subarray(21, 86))
  })
})

describe('the keys of a browser', () => {
  const good = decode(VECTOR.receiverPublic)
  const offCurve = Buffer.from(good)
  offCurve[64]! ^= 1
  const refused: [string, string][] = [
    ['a point that is not on the curve', offCurve.toString('base64url')],
    ['a compressed point', Buffer.concat([Buffer.from([2]), good.subarray(1, 33)]).toString('base64url')],
    ['a hybrid point', Buffer.concat([Buffer.from([6]), good.subarray(1)]).toString('base64url')],
    ['the point at infinity', Buffer.from([0]).toString('base64url')],
    ['65 bytes of zero', Buffer.alloc(65).toString('base64url')],
    ['64 bytes', good.subarray(0, 64).toString('base64url')],
    ['66 bytes', Buffer.concat([good, Buffer.from([0])]).toString('base64url')],
    ['padded base64', `${good.toString('base64url')}=`],
    ['base64 of the other alphabet', good.toString('base64')],
    ['another text', 'p256dh'],
    ['an empty text', ''],
  ]
  for (const [name, text] of refused) {
    test(`${name} is refused as a public key`, () => assert.equal(readPublicKey(text), undefined))
  }

  test('a point of the curve is accepted', () => assert.deepEqual(readPublicKey(VECTOR.receiverPublic), good))

  for (const bytes of [0, 15, 17, 32]) {
    test(`${bytes} bytes are refused as a shared secret`, () =>
      assert.equal(readAuthSecret(Buffer.alloc(bytes).toString('base64url')), undefined))
  }

  test('16 bytes are accepted as a shared secret', () =>
    assert.deepEqual(readAuthSecret(VECTOR.auth), decode(VECTOR.auth)))
})

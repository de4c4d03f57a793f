import { createCipheriv, createECDH, ECDH, hkdfSync, randomBytes } from 'node:crypto'

/**
 * The keys that a browser made for a subscription: its public key of P-256, and its authentication secret (RFC 8291).
 */
export type BrowserKeys = { p256dh: Buffer; auth: Buffer }

/** The values that are random for each message. Only tests pass them, with the vectors of RFC 8291. */
type Random = { salt: Buffer; privateKey?: Buffer }

/** The maximum size of a message before the encryption, in bytes. The encrypted message then has 4,096 bytes. */
export const MAX_PLAINTEXT_BYTES = 3_993

const CURVE = 'prime256v1'
const POINT_BYTES = 65
const AUTH_BYTES = 16
const RECORD_BYTES = 4_096

// The octet that ends the content of the last record (RFC 8188, section 2).
const LAST_RECORD = Buffer.from([2])

/** Reads the public key of a browser. Returns undefined unless it is canonical base64url of a point of the curve. */
export function readPublicKey(text: string): Buffer | undefined {
  const point = decode(text)
  if (point?.length !== POINT_BYTES || point[0] !== 4) return undefined
  try {
    ECDH.convertKey(point, CURVE)
    return point
  } catch {
    return undefined
  }
}

/** Reads the authentication secret of a browser. Returns undefined unless it is canonical base64url of 16 bytes. */
export function readAuthSecret(text: string): Buffer | undefined {
  const secret = decode(text)
  return secret?.length === AUTH_BYTES ? secret : undefined
}

function decode(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url')
  return bytes.toString('base64url') === text ? bytes : undefined
}

/**
 * Encrypts a message for a browser (RFC 8291) as one record of the content coding aes128gcm (RFC 8188). Makes a new key
 * pair and a new salt for each message.
 * @throws RangeError if the message is longer than `MAX_PLAINTEXT_BYTES`
 */
export function encrypt(
  message: Buffer,
  { p256dh, auth }: BrowserKeys,
  { salt, privateKey }: Random = { salt: randomBytes(16) },
): Buffer {
  if (message.length > MAX_PLAINTEXT_BYTES) throw new RangeError(`a message has ${message.length} bytes`)
  const pair = createECDH(CURVE)
  if (privateKey) pair.setPrivateKey(privateKey)
  else pair.generateKeys()
  const ours = pair.getPublicKey()
  const { key, nonce } = deriveContentKeys(pair.computeSecret(p256dh), { auth, salt, receiver: p256dh, sender: ours })
  const cipher = createCipheriv('aes-128-gcm', key, nonce)
  const sizes = Buffer.alloc(5)
  sizes.writeUInt32BE(RECORD_BYTES)
  sizes.writeUInt8(POINT_BYTES, 4)
  return Buffer.concat([
    ...[salt, sizes, ours],
    ...[cipher.update(message), cipher.update(LAST_RECORD), cipher.final(), cipher.getAuthTag()],
  ])
}

type Exchange = { auth: Buffer; salt: Buffer; receiver: Buffer; sender: Buffer }

/**
 * Derives the key and the nonce of a message (RFC 8291, section 3.4).
 * @param sharedSecret the result of the key agreement
 */
export function deriveContentKeys(sharedSecret: Buffer, { auth, salt, receiver, sender }: Exchange) {
  const info = Buffer.concat([Buffer.from('WebPush: info\0'), receiver, sender])
  const secret = derive(sharedSecret, auth, info, 32)
  return {
    key: derive(secret, salt, 'Content-Encoding: aes128gcm\0', 16),
    nonce: derive(secret, salt, 'Content-Encoding: nonce\0', 12),
  }
}

function derive(secret: Buffer, salt: Buffer, info: string | Buffer, bytes: number): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, salt, info, bytes))
}

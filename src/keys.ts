import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto'

/** All that is derived from one secret. The secret itself signs tokens, so that a games service that has it can check them. */
type Key = { id: string; signing: string; mac: KeyObject; seal: KeyObject }

export type Keys = {
  /** Newest first: the first signs, seals and hashes; all of them are accepted. */
  signing: readonly { id: string; secret: string }[]
  /** The keyed hash under which a code is stored; bound to the code's row, 32 bytes. */
  mac(codeId: string, code: string): Buffer
  /** Whether `code` is the one behind `stored`, under any of the keys; in constant time for each. */
  matches(stored: Buffer, codeId: string, code: string): boolean
  /** AES-256-GCM, bound to the code's row, base64url. */
  seal(codeId: string, code: string): string
  /** The code again, or undefined when no key of ours opens it. */
  open(codeId: string, sealed: string): string | undefined
}

/** @param secrets JWT_SECRET, newest first; at least one */
export function deriveKeys(secrets: readonly string[]): Keys {
  const keys = secrets.map(derive)
  const first = keys[0]
  if (!first) throw new Error('deriveKeys needs a secret')
  return {
    signing: keys.map(key => ({ id: key.id, secret: key.signing })),
    mac: (codeId, code) => macUnder(first, codeId, code),
    // Every key is tried even after a match, so that the time tells nothing of which.
    matches: (stored, codeId, code) =>
      keys.map(key => timingSafeEqual(macUnder(key, codeId, code), stored)).some(matched => matched),
    seal: (codeId, code) => sealUnder(first, codeId, code),
    open: (codeId, sealed) => {
      for (const key of keys) {
        const code = openUnder(key, codeId, sealed)
        if (code !== undefined) return code
      }
      return undefined
    },
  }
}

function derive(secret: string): Key {
  const of = (purpose: string, bytes: number) =>
    Buffer.from(hkdfSync('sha256', secret, 'courtside', purpose, bytes) as ArrayBuffer)
  return {
    id: of('key id', 6).toString('base64url'),
    signing: secret,
    // As bytes they would be made into such an object at each use, which takes longer than the use.
    mac: createSecretKey(of('code mac', 32)),
    seal: createSecretKey(of('code seal', 32)),
  }
}

function macUnder(key: Key, codeId: string, code: string): Buffer {
  return createHmac('sha256', key.mac).update(`${codeId}:${code}`).digest()
}

function sealUnder(key: Key, codeId: string, code: string): string {
  const iv = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', key.seal, iv).setAAD(Buffer.from(codeId))
  const sealed = Buffer.concat([cipher.update(code, 'utf8'), cipher.final()])
  return Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString('base64url')
}

function openUnder(key: Key, codeId: string, sealed: string): string | undefined {
  const bytes = Buffer.from(sealed, 'base64url')
  if (bytes.length < 28) return undefined
  try {
    const decipher = createDecipheriv('aes-256-gcm', key.seal, bytes.subarray(0, 12), { authTagLength: 16 })
    decipher.setAAD(Buffer.from(codeId)).setAuthTag(bytes.subarray(12, 28))
    return Buffer.concat([decipher.update(bytes.subarray(28)), decipher.final()]).toString('utf8')
  } catch {
    return undefined
  }
}

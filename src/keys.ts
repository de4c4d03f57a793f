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

/** The keys of one secret. The secret itself signs tokens, so a games service that has it can check them. */
type Key = { id: string; signing: string; mac: KeyObject; seal: KeyObject }

export type Keys = {
  /** Newest first. The first key signs, seals and hashes. All keys are accepted. */
  signing: readonly { id: string; secret: string }[]
  /** Returns the keyed hash of a code, 32 bytes. It is bound to the code's row. */
  mac(codeId: string, code: string): Buffer
  /** Returns whether `stored` is the hash of `code` under any key. Each comparison takes constant time. */
  matches(stored: Buffer, codeId: string, code: string): boolean
  /** Encrypts a code with AES-256-GCM, bound to the code's row. Returns base64url. */
  seal(codeId: string, code: string): string
  /** Decrypts a sealed code. Returns undefined if no key opens it. */
  open(codeId: string, sealed: string): string | undefined
}

/** Derives all keys. @param secrets at least one, newest first (`JWT_SECRET`) */
export function deriveKeys(secrets: readonly string[]): Keys {
  const keys = secrets.map(derive)
  const first = keys[0]
  if (!first) throw new Error('deriveKeys needs a secret')
  return {
    signing: keys.map(key => ({ id: key.id, secret: key.signing })),
    mac: (codeId, code) => macUnder(first, codeId, code),
    // Every key is tried, even after a match, so the time does not reveal which key matched.
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
  const deriveBytes = (purpose: string, bytes: number) =>
    Buffer.from(hkdfSync('sha256', secret, 'courtside', purpose, bytes) as ArrayBuffer)
  return {
    id: deriveBytes('key id', 6).toString('base64url'),
    signing: secret,
    // Node would turn raw bytes into a key object at each use, which takes longer than the use.
    mac: createSecretKey(deriveBytes('code mac', 32)),
    seal: createSecretKey(deriveBytes('code seal', 32)),
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

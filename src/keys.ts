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

/**
 * The keys from one secret. All keys except `signing` are derived from the secret. `signing` is the secret itself, so
 * a games service that has the secret can check tokens.
 */
type Key = {
  id: string
  signing: string
  mac: KeyObject
  seal: KeyObject
  digest: KeyObject
  link: KeyObject
  topic: KeyObject
}

export type Keys = {
  /**
   * The signing keys, the newest first. The service signs, seals and hashes only with the newest secret. It still
   * accepts the tokens, sealed codes and hashes that it made with the older secrets.
   */
  signing: readonly { id: string; secret: string }[]
  /** Returns one keyed hash of 32 bytes over a sign-in code and `codeId`. `codeId` is the id of the code's row. */
  mac(codeId: string, code: string): Buffer
  /** Returns whether `stored` is the hash of the code under one of the keys. Each comparison takes constant time. */
  matches(stored: Buffer, codeId: string, code: string): boolean
  /** Encrypts a code with AES-256-GCM and returns base64url. `open` needs the same `codeId` to decrypt the code. */
  seal(codeId: string, code: string): string
  /** Decrypts a sealed code. Returns undefined if no key can decrypt the code. */
  open(codeId: string, sealed: string): string | undefined
  /** Returns a keyed hash of a text, with the id of the key in front of it: `<key id>.<hash>`. */
  digest(text: string): string
  /**
   * Returns whether `stored` is the keyed hash of the text. Returns undefined if none of the secrets made the hash.
   */
  matchesDigest(stored: string, text: string): boolean | undefined
  /** Returns 128 bits of a keyed hash of a text, in base64url, for a link that needs no sign-in. */
  signLink(text: string): string
  /** Returns whether one of the secrets made the hash of a link. Each comparison takes constant time. */
  matchesLink(signature: string, text: string): boolean
  /** Returns whether the newest secret decrypts a sealed text. If not, an older secret sealed the text. */
  isNewest(codeId: string, sealed: string): boolean
  /**
   * Returns the topic of the pushes to a user with a tag (RFC 8030): 32 characters that reveal neither of the two to
   * the push service. A new push replaces an undelivered push with the same topic.
   */
  topic(userId: number, tag: string): string
}

/** The longest topic that RFC 8030 allows. */
const TOPIC_LENGTH = 32

/** Derives all keys from the secrets. @param secrets at least one secret, the newest first (`JWT_SECRET`) */
export function deriveKeys(secrets: readonly string[]): Keys {
  const keys = secrets.map(derive)
  const first = keys[0]
  if (!first) throw new Error('deriveKeys needs a secret')
  return {
    signing: keys.map(key => ({ id: key.id, secret: key.signing })),
    mac: (codeId, code) => macUnder(first, codeId, code),
    // The function tries all keys, even after a match, so its duration does not reveal which key matched.
    matches: (stored, codeId, code) =>
      keys.map(key => timingSafeEqual(macUnder(key, codeId, code), stored)).some(isEqual => isEqual),
    seal: (codeId, code) => sealUnder(first, codeId, code),
    open: (codeId, sealed) => {
      for (const key of keys) {
        const code = openUnder(key, codeId, sealed)
        if (code !== undefined) return code
      }
      return undefined
    },
    digest: text => digestUnder(first, text),
    matchesDigest: (stored, text) => {
      const key = keys.find(({ id }) => stored.startsWith(`${id}.`))
      return key && digestUnder(key, text) === stored
    },
    signLink: text => linkUnder(first, text).toString('base64url'),
    matchesLink: (signature, text) => {
      const bytes = Buffer.from(signature, 'base64url')
      const isExact = bytes.length === LINK_BYTES && bytes.toString('base64url') === signature
      return isExact && keys.map(key => timingSafeEqual(linkUnder(key, text), bytes)).some(isEqual => isEqual)
    },
    isNewest: (codeId, sealed) => openUnder(first, codeId, sealed) !== undefined,
    topic: (userId, tag) =>
      createHmac('sha256', first.topic).update(`${userId}:${tag}`).digest('base64url').slice(0, TOPIC_LENGTH),
  }
}

function derive(secret: string): Key {
  const deriveBytes = (purpose: string, bytes: number) =>
    Buffer.from(hkdfSync('sha256', secret, 'courtside', purpose, bytes) as ArrayBuffer)
  return {
    id: deriveBytes('key id', 6).toString('base64url'),
    signing: secret,
    // If these keys were raw bytes, Node would create a key object for each operation. The creation of a key object
    // takes longer than the operation itself. So we create each key object only once.
    mac: createSecretKey(deriveBytes('code mac', 32)),
    seal: createSecretKey(deriveBytes('code seal', 32)),
    digest: createSecretKey(deriveBytes('digest', 32)),
    link: createSecretKey(deriveBytes('link', 32)),
    topic: createSecretKey(deriveBytes('push topic', 32)),
  }
}

function macUnder(key: Key, codeId: string, code: string): Buffer {
  return createHmac('sha256', key.mac).update(`${codeId}:${code}`).digest()
}

function digestUnder({ id, digest }: Key, text: string): string {
  return `${id}.${createHmac('sha256', digest).update(text).digest('base64url')}`
}

const LINK_BYTES = 16

function linkUnder({ link }: Key, text: string): Buffer {
  return createHmac('sha256', link).update(text).digest().subarray(0, LINK_BYTES)
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

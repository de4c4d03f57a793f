import { createDecipheriv, createECDH, randomBytes } from 'node:crypto'
import { deriveContentKeys } from './encryption.ts'

const MAX_RECEIVERS = 100
const MAX_KEPT = 100

const SALT_BYTES = 16
const POINT_BYTES = 65
const TAG_BYTES = 16
/** The salt, the size of a record, and the length of the sender's key (RFC 8188, section 2.1). */
const PREFIX_BYTES = SALT_BYTES + 5

/** The headers of a push that a push service reads. */
type PushHeaders = { ttl: number; urgency: string; topic: string }

type KeptPush = PushHeaders & { endpoint: string; sentAt: Date; message: unknown }

type Receiver = { endpoint: string; keys: ReturnType<typeof createECDH>; auth: Buffer }

export type DevPush = ReturnType<typeof createDevPush>

/**
 * Creates the push service for development. It stands for the push service of a browser's vendor and for the browser:
 * it makes subscriptions, receives pushes, decrypts them and keeps them in memory. It keeps the newest 100
 * subscriptions and the newest 100 pushes.
 */
export function createDevPush(now: () => Date) {
  const receivers = new Map<string, Receiver>()
  const kept: KeptPush[] = []
  return {
    /**
     * Makes a subscription, as `PushSubscription.toJSON()` returns it.
     * @param base the URL below which the endpoint is
     */
    subscribe(base: string) {
      const keys = createECDH('prime256v1')
      const id = randomBytes(18).toString('base64url')
      const receiver = { endpoint: `${base}/${id}`, keys, auth: randomBytes(16) }
      const p256dh = keys.generateKeys('base64url')
      if (receivers.size >= MAX_RECEIVERS) receivers.delete(receivers.keys().next().value!)
      receivers.set(id, receiver)
      return {
        endpoint: receiver.endpoint,
        expirationTime: null,
        keys: { p256dh, auth: receiver.auth.toString('base64url') },
      }
    },

    /** Takes a push. @returns `unreadable` if it was not made for this subscription */
    receive(id: string, headers: PushHeaders, body: Buffer): 'kept' | 'unknown' | 'unreadable' {
      const receiver = receivers.get(id)
      if (!receiver) return 'unknown'
      let message: unknown
      try {
        message = JSON.parse(decrypt(body, receiver).toString('utf8'))
      } catch {
        return 'unreadable'
      }
      kept.unshift({ endpoint: receiver.endpoint, sentAt: now(), ...headers, message })
      kept.splice(MAX_KEPT)
      return 'kept'
    },

    /** Returns the latest pushes, the newest first. */
    latest: (): readonly KeptPush[] => kept,
  }
}

/** Decrypts a push as a browser does (RFC 8291). @throws if the push was not made for the receiver */
function decrypt(body: Buffer, { keys, auth }: Receiver): Buffer {
  const salt = body.subarray(0, SALT_BYTES)
  const sender = body.subarray(PREFIX_BYTES, PREFIX_BYTES + POINT_BYTES)
  const sealed = body.subarray(PREFIX_BYTES + POINT_BYTES)
  const exchange = { auth, salt, receiver: keys.getPublicKey(), sender }
  const { key, nonce } = deriveContentKeys(keys.computeSecret(sender), exchange)
  const decipher = createDecipheriv('aes-128-gcm', key, nonce, { authTagLength: TAG_BYTES })
  decipher.setAuthTag(sealed.subarray(-TAG_BYTES))
  const padded = Buffer.concat([decipher.update(sealed.subarray(0, -TAG_BYTES)), decipher.final()])
  return padded.subarray(0, padded.lastIndexOf(2))
}

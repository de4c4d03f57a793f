import { createECDH, createPrivateKey } from 'node:crypto'
import { createSigner } from 'fast-jwt'

/** How long a token is valid. RFC 8292 allows at most 24 hours. */
const TOKEN_SECONDS = 12 * 3_600
/** How long a token is used again. A push service may check each token that it has not seen before. */
const REUSE_MS = 3_600_000
/** Endpoints have few origins. The limit only bounds the memory if a pattern of PUSH_HOSTS matches many hosts. */
const MAX_TOKENS = 1_000

/** Signs requests to push services, so they know who sends them (VAPID, RFC 8292). */
export type Vapid = {
  /** The public keys in base64url, the newest first. A browser subscribes with the first one. */
  publicKeys: readonly string[]
  /**
   * Returns the header `Authorization` for a request. Returns undefined if this process does not have the private key.
   * @param publicKey the key with which the subscription was made
   * @param origin the origin of the endpoint
   */
  authorize(publicKey: string, origin: string, now: Date): string | undefined
}

/**
 * @param privateKeys the private keys of P-256 in base64url, the newest first. At least one
 * @param subject how a push service can reach the operator: a `mailto:` or `https:` URL
 */
export function createVapid(privateKeys: readonly string[], subject: string): Vapid {
  const signers = new Map(privateKeys.map(createKeySigner))
  const tokens = new Map<string, { token: string; until: number }>()
  return {
    publicKeys: [...signers.keys()],
    authorize(publicKey, origin, now) {
      const sign = signers.get(publicKey)
      if (!sign) return undefined
      const name = `${publicKey} ${origin}`
      let known = tokens.get(name)
      if (!known || known.until <= now.getTime() || known.until - REUSE_MS > now.getTime()) {
        const token = sign({ aud: origin, exp: Math.floor(now.getTime() / 1_000) + TOKEN_SECONDS, sub: subject })
        known = { token, until: now.getTime() + REUSE_MS }
        tokens.delete(name)
        if (tokens.size >= MAX_TOKENS) tokens.delete(tokens.keys().next().value!)
        tokens.set(name, known)
      }
      return `vapid t=${known.token}, k=${publicKey}`
    },
  }
}

type Claims = { aud: string; exp: number; sub: string }

/** Returns the public key of a private key, and the function that signs with it. */
function createKeySigner(privateKey: string): [string, (claims: Claims) => string] {
  const pair = createECDH('prime256v1')
  pair.setPrivateKey(privateKey, 'base64url')
  const point = pair.getPublicKey()
  const jwk = {
    kty: 'EC',
    crv: 'P-256',
    d: privateKey,
    x: point.subarray(1, 33).toString('base64url'),
    y: point.subarray(33).toString('base64url'),
  }
  const key = createPrivateKey({ key: jwk, format: 'jwk' }).export({ type: 'pkcs8', format: 'pem' }) as string
  return [point.toString('base64url'), createSigner({ key, algorithm: 'ES256', noTimestamp: true })]
}

import type { RefreshResult } from './api.ts'
import { wait } from './backoff.ts'
import type { Answer, Endpoint, Input } from './endpoints.ts'
import { CourtsideError } from './error.ts'
import { type Request, send, sendForJson, type Wire } from './http.ts'
import { callListener } from './listener.ts'
import type { TokenStorage } from './storage.ts'

/** The tokens, and every request that carries one. */
export class Session {
  readonly #wire: Wire
  readonly #storage: TokenStorage
  readonly #listeners = new Set<() => void>()
  /** The token that was last seen here; what it was tells whether a session has ended. */
  #seen: string | null = null
  #renewing: Promise<string | null> | undefined

  constructor(wire: Wire, storage: TokenStorage) {
    this.#wire = wire
    this.#storage = storage
    const look = () => void this.token().catch(() => {})
    storage.onChange?.(look)
    look()
  }

  /** The token as it is stored now, whoever stored it. */
  async token(): Promise<string | null> {
    const token = await this.#storage.get('token')
    const before = this.#seen
    this.#seen = token
    const isOver = before !== null && (token === null || !isSamePerson(before, token))
    if (isOver) for (const listener of [...this.#listeners]) callListener(listener)
    return token
  }

  /** Calls the listener when the session that was seen here has ended, wherever it was ended. @returns unsubscribe */
  onSignedOut(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  async begin(token: string): Promise<void> {
    await this.#storage.set('token', token)
    await this.#storage.set('last_token', null)
    await this.token()
  }

  /** @param remember keeps the token for the lane that it gives at the next sign-in */
  async end({ remember }: { remember: boolean }): Promise<void> {
    const token = await this.#storage.get('token')
    if (!remember) await this.#storage.set('last_token', null)
    else if (token !== null) await this.#storage.set('last_token', token)
    await this.#storage.set('token', null)
    await this.token()
  }

  /** Calls an endpoint whose caller must be signed in. @throws CourtsideError */
  call<E extends Endpoint>(endpoint: E, input: Input<E>): Promise<Answer<E>> {
    return this.#withToken(token => sendForJson(this.#wire, { ...requestOf(endpoint, input), token }))
  }

  /**
   * Calls one for which no token is needed; a former session's is sent where it gives a lane. @throws CourtsideError
   */
  async callPublic<E extends Endpoint>(endpoint: E, input: Input<E>, { lane = false } = {}): Promise<Answer<E>> {
    const token = lane ? ((await this.token()) ?? (await this.#storage.get('last_token'))) : null
    return sendForJson(this.#wire, { ...requestOf(endpoint, input), token })
  }

  /** The answer to a GET, its body unread. @throws CourtsideError */
  open(path: string, signal: AbortSignal): Promise<Response> {
    return this.#withToken(token => send(this.#wire, { method: 'GET', path, token, signal }))
  }

  /** "A client that receives 401 may call POST /auth/refresh once and repeat the failed request with the new token." */
  async #withToken<T>(attempt: (token: string | null) => Promise<T>): Promise<T> {
    const token = await this.token()
    try {
      return await attempt(token)
    } catch (error) {
      if (token === null || !isUnauthenticated(error)) throw error
      const renewed = await this.renew(token)
      // Somebody else may have signed in in another tab: what one person asked for is not repeated as the other.
      if (renewed === null || !isSamePerson(token, renewed)) throw error
      return attempt(renewed)
    }
  }

  /**
   * A token newer than this one, from a refresh that all who ask at once share, or from whoever refreshed it meanwhile.
   * @returns null when the session is over @throws CourtsideError when that can't be told; the token is kept
   */
  async renew(stale: string): Promise<string | null> {
    const current = await this.token()
    if (current !== stale) return current
    this.#renewing ??= this.#alone(waited => this.#refresh(stale, waited)).finally(() => {
      this.#renewing = undefined
    })
    return this.#renewing
  }

  /**
   * One tab after the other, where the browser can. (Where it can't, the service has patience with one chain's
   * repeats.)
   * @param work is told whether it had to wait for another tab
   */
  async #alone<T>(work: (waited: boolean) => Promise<T>): Promise<T> {
    const locks = globalThis.navigator?.locks
    if (!locks) return work(false)
    const name = `courtside-refresh ${this.#wire.url}`
    const first = await locks.request(name, { ifAvailable: true }, async lock =>
      lock ? { result: await work(false) } : undefined,
    )
    return first ? first.result : locks.request(name, () => work(true))
  }

  async #refresh(stale: string, waited: boolean): Promise<string | null> {
    // Another tab may have been first while this one waited for its turn. What it stored arrives by another way than the
    // end of its turn, in some browsers a little later.
    let current = await this.token()
    for (let looks = 0; waited && current === stale && looks < 10; looks += 1) {
      await wait(20)
      current = await this.token()
    }
    if (current !== stale) return current
    const request = { ...requestOf('POST /api/v1/auth/refresh', {}), token: stale }
    const renewed = await sendForJson<RefreshResult>(this.#wire, request).catch(error => {
      if (isUnauthenticated(error)) return null
      throw error
    })
    // A log-out or another sign-in during the exchange stands.
    if ((await this.token()) !== stale) return this.token()
    if (renewed === null) await this.end({ remember: true })
    else await this.#storage.set('token', renewed.access_token)
    return this.token()
  }
}

function requestOf(endpoint: Endpoint, input: { path?: object; query?: object; body?: unknown }): Request {
  const [method, template] = endpoint.split(' ') as [string, string]
  const inPath = (input.path ?? {}) as Record<string, unknown>
  const path = template.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(String(inPath[name])))
  const query = Object.entries(input.query ?? {})
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`)
  return { method, path: query.length > 0 ? `${path}?${query.join('&')}` : path, body: input.body }
}

/** The service's own 401. A proxy that asks for a password says nothing about the session. */
function isUnauthenticated(error: unknown): boolean {
  return error instanceof CourtsideError && error.code === 'unauthenticated'
}

/** Whether two tokens were issued to one person; taken for granted of a token that can't be read. */
function isSamePerson(one: string, other: string): boolean {
  const [subject, another] = [subjectOf(one), subjectOf(other)]
  return subject === undefined || another === undefined || subject === another
}

function subjectOf(token: string): unknown {
  try {
    return JSON.parse(atob(token.split('.')[1]!.replaceAll('-', '+').replaceAll('_', '/'))).sub
  } catch {
    return undefined
  }
}

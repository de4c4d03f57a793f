import type { RefreshResult } from './api.ts'
import { wait } from './backoff.ts'
import { isSameUser, readClaims } from './claims.ts'
import type { Answer, Endpoint, Input } from './endpoints.ts'
import { type ClientErrorCode, CourtsideError, createClientError } from './error.ts'
import { findLanguage, type JsonAnswer, type Request, send, sendForJson, type Transport } from './http.ts'
import { callListener } from './listener.ts'
import { withLock } from './lock.ts'
import { type TokenStorage, toReliable } from './storage.ts'

/** Manages the tokens and sends the requests of the client. */
export class Session {
  readonly #transport: Transport
  readonly #storage: TokenStorage
  readonly #listeners = new Set<() => void>()
  /**
   * The token that the last call of `token()` returned, or null. If the storage now contains another token or none, the
   * session may have ended.
   */
  #lastSeenToken: string | null = null
  #pendingRefresh: Promise<string | null> | undefined

  constructor(transport: Transport, storage: TokenStorage) {
    this.#transport = transport
    this.#storage = toReliable(storage)
    const checkToken = () => void this.token().catch(() => {})
    this.#storage.onChange?.(checkToken)
    checkToken()
  }

  /** Returns the stored token, or null. If the session has ended since the last call, calls the listeners. */
  async token(): Promise<string | null> {
    const token = await this.#storage.get('token')
    const before = this.#lastSeenToken
    this.#lastSeenToken = token
    const hasEnded = before !== null && (token === null || !isSameUser(before, token))
    if (hasEnded) for (const listener of [...this.#listeners]) callListener(listener)
    return token
  }

  /** Calls the listener when the session has ended, in any tab. @returns a function that removes the listener */
  onSignedOut(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  async begin(token: string): Promise<void> {
    await this.#storage.set('token', token)
    await this.#storage.set('last_token', null)
    await this.token()
  }

  /**
   * Removes the token.
   * @param remember whether to keep the token as `last_token`, which the next sign-in sends (see `TokenKey`)
   */
  async end({ remember }: { remember: boolean }): Promise<void> {
    const token = await this.#storage.get('token')
    if (!remember) await this.#storage.set('last_token', null)
    else if (token !== null) await this.#storage.set('last_token', token)
    await this.#storage.set('token', null)
    await this.token()
  }

  /**
   * Calls an endpoint that requires a signed-in user.
   * @param signal if this signal is aborted, the call fails with the error code `network`
   * @param language the language of the answer. The default is the language of the client
   * @returns the body of the answer
   * @throws CourtsideError
   */
  call<E extends Endpoint>(
    endpoint: E,
    input: Input<E>,
    options: { signal?: AbortSignal; language?: string } = {},
  ): Promise<Answer<E>> {
    return this.#withToken(async token => {
      const request = { ...createRequest(endpoint, input), ...options, token }
      return (await sendForJson<Answer<E>>(this.#transport, request)).body
    })
  }

  /**
   * Calls an endpoint that requires no token.
   * @param isKnown whether to send a token, by which the service recognizes a known client (see `TokenKey`). If there
   * is no current token, the client sends `last_token`
   * @throws CourtsideError
   */
  async callPublic<E extends Endpoint>(
    endpoint: E,
    input: Input<E>,
    { isKnown = false } = {},
  ): Promise<JsonAnswer<Answer<E>>> {
    const token = isKnown ? ((await this.token()) ?? (await this.#storage.get('last_token'))) : null
    return sendForJson(this.#transport, { ...createRequest(endpoint, input), token })
  }

  /** Sends a GET request. @returns the answer, whose body is not read yet @throws CourtsideError */
  open(path: string, signal: AbortSignal): Promise<Response> {
    return this.#withToken(token => send(this.#transport, { method: 'GET', path, token, signal }))
  }

  /**
   * Runs a request with the stored token. If the service answers 401, refreshes the token and repeats the request once.
   */
  async #withToken<T>(attempt: (token: string | null) => Promise<T>): Promise<T> {
    const token = await this.token()
    try {
      return await attempt(token)
    } catch (error) {
      if (token === null || !isUnauthenticated(error)) throw error
      const renewed = await this.renew(token)
      // A different user may have signed in in another tab. We must not repeat the request with the token of this
      // different user.
      if (renewed === null || !isSameUser(token, renewed)) throw error
      return attempt(renewed)
    }
  }

  /**
   * Returns a token newer than `stale`. Concurrent calls share one refresh. If another tab has already refreshed the
   * token, this method returns the token from that tab.
   * @returns null if the session has ended
   * @throws CourtsideError if the service neither refreshes nor refuses the token; in this case the token stays stored
   */
  async renew(stale: string): Promise<string | null> {
    const current = await this.token()
    if (current !== stale) return current
    this.#pendingRefresh ??= withLock(`courtside-refresh ${this.#transport.url}`, hasWaited =>
      this.#refresh(stale, hasWaited),
    ).finally(() => {
      this.#pendingRefresh = undefined
    })
    return this.#pendingRefresh
  }

  /** Creates an error for a failure that the client itself detected. Its message is in the language of the client. */
  createError(code: ClientErrorCode, cause: unknown): CourtsideError {
    return createClientError(code, 0, findLanguage(this.#transport), { cause })
  }

  /** Returns a name that identifies the service and the session, or undefined if the token contains no session. */
  async sharedName(): Promise<string | undefined> {
    const token = await this.token()
    const { sid } = token === null ? {} : readClaims(token)
    return sid === undefined ? undefined : `courtside-watch ${this.#transport.url} ${sid}`
  }

  async #refresh(stale: string, hasWaited: boolean): Promise<string | null> {
    // If we waited for the lock, another tab may have stored a new token. In some browsers, a new token from another
    // tab becomes readable only after a delay, so we look up to ten times.
    let current = await this.token()
    for (let looks = 0; hasWaited && current === stale && looks < 10; looks += 1) {
      await wait(20)
      current = await this.token()
    }
    if (current !== stale) return current
    const request = { ...createRequest('POST /api/v1/auth/refresh', {}), token: stale }
    const renewed = await sendForJson<RefreshResult>(this.#transport, request).catch(error => {
      if (isUnauthenticated(error)) return null
      throw error
    })
    // If the user logged out or signed in again during the refresh, we ignore the result of the refresh.
    if ((await this.token()) !== stale) return this.token()
    if (renewed === null) await this.end({ remember: true })
    else await this.#storage.set('token', renewed.body.access_token)
    return this.token()
  }
}

function createRequest(endpoint: Endpoint, input: { path?: object; query?: object; body?: unknown }): Request {
  const [method, template] = endpoint.split(' ') as [string, string]
  const parameters = (input.path ?? {}) as Record<string, unknown>
  const path = template.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(String(parameters[name])))
  const query = Object.entries(input.query ?? {})
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`)
  return { method, path: query.length > 0 ? `${path}?${query.join('&')}` : path, body: input.body }
}

/**
 * Returns whether the service answered 401. A 401 from a proxy has another error code, and it does not mean that the
 * session has ended.
 */
function isUnauthenticated(error: unknown): boolean {
  return error instanceof CourtsideError && error.code === 'unauthenticated'
}

import type { CredentialsRequest, GameLevel, Message, OtpVerification, TokenResult, User } from './api.ts'
import { CourtsideError } from './error.ts'
import { Notifications } from './notifications.ts'
import { Session } from './session.ts'
import { memoryStorage, type TokenStorage } from './storage.ts'

export type CourtsideOptions = {
  /** Where the service is, without `/api/v1`; empty: where the page came from. */
  url?: string
  /** Where tokens are kept; by default in memory. */
  storage?: TokenStorage
  /** The language of texts, `fr` or `en`; by default what the browser asks for. */
  language?: string
  fetch?: typeof fetch
}

/** The service, as one person's app uses it. Every method that asks it something throws CourtsideError. */
export class Courtside {
  readonly notifications: Notifications
  readonly #session: Session

  constructor({ url = '', storage = memoryStorage(), language, fetch: given }: CourtsideOptions = {}) {
    // Looked up at each call, and called as a function of the global object, as browsers demand.
    const ask: typeof fetch = given ?? ((input, init) => fetch(input, init))
    this.#session = new Session({ url: url.replace(/\/+$/, ''), language, fetch: ask }, storage)
    this.notifications = new Notifications(this.#session)
  }

  /** Has a code mailed. With the e-mail alone a sign-in; with the other fields a sign-up, which needs all of them. */
  requestOtp(credentials: CredentialsRequest): Promise<Message> {
    return this.#session.callPublic('POST /api/v1/auth/request-otp', { body: credentials }, { lane: true })
  }

  /** Signs in by the code and keeps the token. */
  async verifyOtp(verification: OtpVerification): Promise<TokenResult> {
    const endpoint = 'POST /api/v1/auth/verify-otp'
    const result = await this.#session.callPublic(endpoint, { body: verification }, { lane: true })
    await this.#session.begin(result.access_token)
    return result
  }

  /** Whether there is a token. Whether it still opens anything the next call tells. */
  async signedIn(): Promise<boolean> {
    return (await this.#session.token()) !== null
  }

  async me(): Promise<User> {
    return (await this.#session.call('GET /api/v1/auth/me', {})).data
  }

  async assessLevel(gameLevelId: number): Promise<User> {
    const body = { game_level_id: gameLevelId }
    return (await this.#session.call('POST /api/v1/auth/level-assessment', { body })).data
  }

  /** The levels to choose from, in their order. */
  async gameLevels(): Promise<GameLevel[]> {
    return (await this.#session.callPublic('GET /api/v1/game-levels', {})).data
  }

  /** Deletes the account and everything kept of it. @param code a fresh one, from `requestOtp` */
  async deleteAccount(code: string): Promise<Message> {
    const message = await this.#session.call('DELETE /api/v1/auth/me', { body: { code } })
    await this.#session.end({ remember: false })
    return message
  }

  /** Ends the session. Here it is over even if the service can't be told, which throws. */
  async logout(): Promise<void> {
    try {
      if (await this.signedIn()) await this.#session.call('POST /api/v1/auth/logout', {})
    } catch (error) {
      if (!(error instanceof CourtsideError && error.status === 401)) throw error
    } finally {
      await this.#session.end({ remember: true })
    }
  }

  /** Renews the token now. There is no need to: a call that finds it expired does, by itself. */
  async refresh(): Promise<{ access_token: string }> {
    const token = await this.#session.token()
    const renewed = token === null ? null : await this.#session.renew(token)
    if (renewed === null) throw new CourtsideError('Unauthenticated.', 401, 'unauthenticated')
    return { access_token: renewed }
  }

  /** Calls the listener when the session is over: logged out, in any tab, or refused. @returns unsubscribe */
  onSignedOut(listener: () => void): () => void {
    return this.#session.onSignedOut(listener)
  }
}

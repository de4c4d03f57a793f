import type { CredentialsRequest, GameLevel, Message, OtpVerification, TokenResult, User } from './api.ts'
import { CourtsideError } from './error.ts'
import { createTransport } from './http.ts'
import { Notifications } from './notifications.ts'
import { Session } from './session.ts'
import { memoryStorage, type TokenStorage } from './storage.ts'

export type CourtsideOptions = {
  /** The address of the service without `/api/v1`. Empty means the origin of the page. */
  url?: string
  /** Keeps the tokens. By default they are kept in memory. */
  storage?: TokenStorage
  /** The language of texts, `fr` or `en`. By default the browser's language applies. */
  language?: string
  fetch?: typeof fetch
}

/** The service as the app of one user sees it. Every method that sends a request throws CourtsideError. */
export class Courtside {
  readonly notifications: Notifications
  readonly #session: Session

  constructor({ url = '', storage = memoryStorage(), language, fetch }: CourtsideOptions = {}) {
    this.#session = new Session(createTransport({ url, language, fetch }), storage)
    this.notifications = new Notifications(this.#session)
  }

  /**
   * Requests a code by mail. The e-mail alone requests a sign-in. A sign-up needs all of the other fields too.
   * @returns the service's message, and in `retryAfter` the seconds until another code can be requested, if the service
   * states them
   */
  async requestOtp(credentials: CredentialsRequest): Promise<Message & { retryAfter: number | undefined }> {
    const endpoint = 'POST /api/v1/auth/request-otp'
    const { body, retryAfter } = await this.#session.callPublic(endpoint, { body: credentials }, { lane: true })
    return { ...body, retryAfter }
  }

  /** Signs in with the code and stores the token. */
  async verifyOtp(verification: OtpVerification): Promise<TokenResult> {
    const endpoint = 'POST /api/v1/auth/verify-otp'
    const { body } = await this.#session.callPublic(endpoint, { body: verification }, { lane: true })
    await this.#session.begin(body.access_token)
    return body
  }

  /** Returns whether a token is stored. Only the next call shows whether the service still accepts it. */
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

  /** Returns the levels that a user can choose, sorted by position. */
  async gameLevels(): Promise<GameLevel[]> {
    return (await this.#session.callPublic('GET /api/v1/game-levels', {})).body.data
  }

  /** Deletes the account and all of its data. @param code a fresh code from `requestOtp` */
  async deleteAccount(code: string): Promise<Message> {
    const message = await this.#session.call('DELETE /api/v1/auth/me', { body: { code } })
    await this.#session.end({ remember: false })
    return message
  }

  /** Ends the session. If the service cannot be reached, the session still ends here and this method throws. */
  async logout(): Promise<void> {
    try {
      if (await this.signedIn()) await this.#session.call('POST /api/v1/auth/logout', {})
    } catch (error) {
      if (!(error instanceof CourtsideError && error.status === 401)) throw error
    } finally {
      await this.#session.end({ remember: true })
    }
  }

  /** Renews the token now. An app need not call this, because every call renews an expired token by itself. */
  async refresh(): Promise<{ access_token: string }> {
    const token = await this.#session.token()
    const renewed = token === null ? null : await this.#session.renew(token)
    if (renewed === null) throw new CourtsideError('Unauthenticated.', 401, 'unauthenticated')
    return { access_token: renewed }
  }

  /** Calls the listener when the session ends by a logout in any tab or by a refusal. @returns unsubscribe */
  onSignedOut(listener: () => void): () => void {
    return this.#session.onSignedOut(listener)
  }
}

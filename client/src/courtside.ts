import type { CredentialsRequest, GameLevel, Message, OtpVerification, TokenResult, User } from './api.ts'
import { type Entered, enterCode, type NextPart } from './code-parts.ts'
import { CourtsideError } from './error.ts'
import { createTransport } from './http.ts'
import { Notifications } from './notifications.ts'
import { createPreferences, type Preferences } from './preferences.ts'
import { createPush, type Push } from './push.ts'
import { confirmSubscription, dropSubscription } from './push-subscription.ts'
import { Session } from './session.ts'
import { memoryStorage, type TokenStorage } from './storage.ts'

export type CourtsideOptions = {
  /** The address of the service, without `/api/v1`. The default is the origin of the page. */
  url?: string
  /** The storage for the tokens. By default, the client keeps the tokens in memory. */
  storage?: TokenStorage
  /** The language of messages, `fr` or `en`. The default is the browser's language. */
  language?: string
  /** The function that sends the requests. The default is the global `fetch`. */
  fetch?: typeof fetch
  /**
   * Whether `fetch` returns an answer before the body is complete, so that `watch` can open a stream. The default is
   * `false` in React Native and `true` elsewhere. Set it to `true` if you pass a `fetch` that can stream in React
   * Native.
   */
  stream?: boolean
}

/**
 * The function `fetch` of React Native resolves only when the answer is complete. A stream stays open for a long time,
 * so the app would receive no event until the stream ends.
 */
function canStream(): boolean {
  return globalThis.navigator?.product !== 'ReactNative'
}

/**
 * The client for an app. At most one user is signed in at a time. If a request fails, the method throws CourtsideError.
 */
export class Courtside {
  declare readonly notifications: Notifications
  declare readonly preferences: Preferences
  declare readonly push: Push
  readonly #session: Session
  #lastRequest: CredentialsRequest | undefined

  constructor({ url = '', storage = memoryStorage(), language, fetch, stream = canStream() }: CourtsideOptions = {}) {
    this.#session = new Session(createTransport({ url, language, fetch }), storage)
    this.notifications = new Notifications(this.#session, stream)
    this.preferences = createPreferences(this.#session)
    this.push = createPush(this.#session)
    void confirmSubscription(this.#session)
  }

  /**
   * Requests a code by mail. To sign in, pass only the e-mail address. To sign up, pass all fields.
   * @returns the message of the service. `retryAfter` is the number of seconds until another code can be requested. If
   * the answer does not contain this number, `retryAfter` is undefined.
   */
  async requestOtp(credentials: CredentialsRequest): Promise<Message & { retryAfter: number | undefined }> {
    const endpoint = 'POST /api/v1/auth/request-otp'
    this.#lastRequest = credentials
    const { body, retryAfter } = await this.#session.callPublic(endpoint, { body: credentials }, { isKnown: true })
    return { ...body, retryAfter }
  }

  /**
   * Repeats the last `requestOtp` of this client, with all its fields. A repeated sign-up needs the names and the
   * consent again, because an address alone repeats a sign-up only in the same network.
   */
  async resendOtp(): Promise<Message & { retryAfter: number | undefined }> {
    if (!this.#lastRequest) throw new Error('Call requestOtp before resendOtp.')
    return this.requestOtp(this.#lastRequest)
  }

  /**
   * Signs in with the code and stores the token. A code may have several parts, such as "4921, then 0377". The user may
   * enter them one after another or in one text.
   * @returns `next_part` is true if the entered part is right and the user must enter the next one
   */
  async verifyOtp({ email, code }: OtpVerification): Promise<Entered<TokenResult> | NextPart> {
    const endpoint = 'POST /api/v1/auth/verify-otp'
    const result = await enterCode(code, async part => {
      return (await this.#session.callPublic(endpoint, { body: { email, code: part } }, { isKnown: true })).body
    })
    if (result.next_part) return result
    this.#lastRequest = undefined
    await this.#session.begin(result.access_token)
    // On a shared browser, the subscription of the previous user becomes one of this user.
    void confirmSubscription(this.#session)
    return result
  }

  /** Returns whether a token is stored. This method does not check whether the service still accepts the token. */
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

  /**
   * Deletes the account of the signed-in user and all data of this account.
   * @param code a new code, which `requestOtp` sends by mail
   * @returns `next_part` is true if the entered part is right and the user must enter the next one
   */
  async deleteAccount(code: string): Promise<Entered<Message> | NextPart> {
    const result = await enterCode(code, part => this.#session.call('DELETE /api/v1/auth/me', { body: { code: part } }))
    if (result.next_part) return result
    await dropSubscription()
    await this.#session.end({ remember: false })
    return result
  }

  /**
   * Ends the session and the pushes to this device. If the service cannot be reached, this method signs the user out
   * in the client and then throws.
   * @param forget whether the client becomes a stranger for the service and deletes its last token, as on a shared
   * computer. Otherwise, the client keeps its last token (see `TokenKey`).
   */
  async logout({ forget = false }: { forget?: boolean } = {}): Promise<void> {
    const dropping = dropSubscription()
    try {
      if (await this.signedIn())
        await this.#session.call('POST /api/v1/auth/logout', { body: forget ? { forget } : {} })
    } catch (error) {
      if (!(error instanceof CourtsideError && error.status === 401)) throw error
    } finally {
      await dropping
      await this.#session.end({ remember: !forget })
    }
  }

  /**
   * Refreshes the token. Most apps need not call this method, because all methods that need a token refresh an expired
   * token.
   */
  async refresh(): Promise<{ access_token: string }> {
    const token = await this.#session.token()
    const renewed = token === null ? null : await this.#session.renew(token)
    if (renewed === null) throw new CourtsideError('Unauthenticated.', 401, 'unauthenticated')
    return { access_token: renewed }
  }

  /**
   * Calls the listener when the session has ended, for example after a logout in any tab or a refused refresh.
   * @returns a function that removes the listener
   */
  onSignedOut(listener: () => void): () => void {
    return this.#session.onSignedOut(listener)
  }
}

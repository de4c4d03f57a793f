import type { ServerResponse } from 'node:http'
import type { TestContext } from 'node:test'
import { Courtside, memoryStorage } from 'courtside-client'
import { startServer } from './client.ts'

export const SCOPE = 'https://club.example/'
export const OLD_KEY = Buffer.alloc(65, 1).toString('base64url')
export const NEW_KEY = Buffer.alloc(65, 2).toString('base64url')

type Permission = 'default' | 'denied' | 'granted'

type Options = {
  permission?: Permission
  /** The answer of the user to the question of the browser. */
  answer?: Permission
  userActivation?: { isActive: boolean }
  /** The key with which the browser is subscribed, and whether the user has switched pushes on in our client. */
  subscribed?: { key: string; isOurs: boolean }
  /** Further properties of `navigator`. */
  navigator?: Record<string, unknown>
  /** The globals that this browser does not have. */
  missing?: string[]
  unsubscribe?: () => Promise<boolean>
  subscribe?: () => Promise<void>
}

/**
 * Adds the parts of a browser that receive pushes to Node.
 * @returns `calls`, the calls of these parts, oldest first, and `items`, the items of localStorage
 */
export function installBrowser(t: TestContext, options: Options = {}) {
  const { missing = [], subscribed } = options
  const calls: string[] = []
  let made = 0
  const items = new Map<string, string>(subscribed?.isOurs ? [['courtside.push', SCOPE]] : [])
  let subscription = subscribed && createSubscription(subscribed.key)

  function createSubscription(key: string) {
    made += 1
    const endpoint = `https://push.example/${made}`
    return {
      endpoint,
      options: { applicationServerKey: new Uint8Array(Buffer.from(key, 'base64url')).buffer },
      toJSON: () => ({ endpoint, expirationTime: null, keys: { p256dh: 'p', auth: 'a' } }),
      async unsubscribe() {
        calls.push('unsubscribe')
        await options.unsubscribe?.()
        subscription = undefined
        return true
      },
    }
  }
  const pushManager = {
    getSubscription: async () => subscription ?? null,
    async subscribe({ applicationServerKey }: { applicationServerKey: string }) {
      calls.push('subscribe')
      await options.subscribe?.()
      subscription = createSubscription(applicationServerKey)
      return subscription
    },
  }
  const registration = { scope: SCOPE, pushManager, active: { state: 'activated', addEventListener() {} } }
  const serviceWorker = {
    getRegistration: async () => registration,
    async register(url: string | URL) {
      calls.push(`register ${url}`)
      return registration
    },
  }
  const notification = {
    permission: options.permission ?? 'granted',
    async requestPermission() {
      calls.push('ask')
      notification.permission = options.answer ?? 'granted'
      return notification.permission
    },
  }
  const { locks, language } = globalThis.navigator
  const { userActivation } = options
  const globals: Record<string, unknown> = {
    isSecureContext: true,
    navigator: {
      locks,
      language,
      serviceWorker,
      userActivation,
      userAgent: 'Test',
      platform: '',
      ...options.navigator,
    },
    PushManager: class {},
    Notification: notification,
    localStorage: {
      getItem: (key: string) => items.get(key) ?? null,
      setItem: (key: string, value: string) => void items.set(key, value),
      removeItem: (key: string) => void items.delete(key),
    },
  }
  for (const name of missing) delete globals[name]
  for (const [name, value] of Object.entries(globals)) defineGlobal(t, name, value)
  return { calls, items, isSubscribed: () => subscription !== undefined }
}

function defineGlobal(t: TestContext, name: string, value: unknown): void {
  const before = Object.getOwnPropertyDescriptor(globalThis, name)
  Object.defineProperty(globalThis, name, { value, configurable: true })
  t.after(() => (before ? Object.defineProperty(globalThis, name, before) : Reflect.deleteProperty(globalThis, name)))
}

export type Received = { request: string; token: string | undefined; body: any }
type Answers = Record<string, (response: ServerResponse) => void>

/**
 * Starts a service that sends pushes with `NEW_KEY`, and records the requests.
 * @param answers the answers that differ, such as `{ 'GET /api/v1/push/key': notFound }`
 */
export async function startPushService(t: TestContext, answers: Answers = {}) {
  const received: Received[] = []
  const server = await startServer(async (request, response) => {
    const text = Buffer.concat(await request.toArray()).toString()
    const name = `${request.method} ${request.url}`
    const token = request.headers.authorization?.slice('Bearer '.length)
    received.push({ request: name, token, body: text === '' ? undefined : JSON.parse(text) })
    const answer = answers[name]
    if (answer) return answer(response)
    if (name === 'GET /api/v1/push/key') return void response.end(JSON.stringify({ data: { public_key: NEW_KEY } }))
    response.end(JSON.stringify({ data: { id: 1 }, message: 'Done.', access_token: 'a.b.c', is_new_user: false }))
  })
  t.after(() => server.close())
  return { url: server.url, received, requests: () => received.map(({ request }) => request) }
}

/** Returns an answer with an error of the service. */
export function fails(status: number, code: string, errors?: Record<string, string[]>) {
  return (response: ServerResponse) => {
    response.writeHead(status).end(JSON.stringify({ message: 'Refused.', code, errors }))
  }
}

/** Creates a client whose storage contains the given tokens. */
export function createClient(
  url: string,
  tokens: { token?: string; last_token?: string } = { token: 'a.b.c' },
): Courtside {
  const storage = memoryStorage()
  if (tokens.token) storage.set('token', tokens.token)
  if (tokens.last_token) storage.set('last_token', tokens.last_token)
  return new Courtside({ url, storage, language: 'en' })
}

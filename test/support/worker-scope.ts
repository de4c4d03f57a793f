import { readFile } from 'node:fs/promises'
import { createContext, runInContext } from 'node:vm'

/** The scope of the service worker. */
export const WORKER_SCOPE = 'https://club.example/app/'
const ours = await readFile(new URL('../../client/dist/service-worker.js', import.meta.url), 'utf8')

type Window = { url: string; focus?: () => Promise<void> }
export type Shown = { title: string; options: Record<string, any> }

/**
 * Runs a service worker, by default ours, in a scope that records what it does. `send` dispatches an event and waits
 * for its work.
 */
export function startWorker({ code = ours, windows = [] as Window[], hasBadge = true, badge = async () => {} } = {}) {
  const listeners = new Map<string, (event: any) => void>()
  const calls: string[] = []
  const shown: Shown[] = []
  const record = (call: string) => async () => {
    calls.push(call)
  }
  const clients = {
    matchAll: async () =>
      windows.map(({ url, focus }) => ({
        url,
        focus: focus ?? record(`focus ${url}`),
        postMessage: (message: unknown) => calls.push(`post ${JSON.stringify(message)}`),
      })),
    openWindow: async (url: string) => calls.push(`open ${url}`),
  }
  const setBadge = (call: string) => {
    calls.push(call)
    return badge()
  }
  const registration = {
    scope: WORKER_SCOPE,
    showNotification: async (title: string, options: Shown['options']) => void shown.push({ title, options }),
    pushManager: {
      subscribe: async ({ applicationServerKey }: { applicationServerKey: string }) =>
        calls.push(`subscribe ${applicationServerKey}`),
    },
  }
  const navigator = hasBadge
    ? { setAppBadge: (count: number) => setBadge(`badge ${count}`), clearAppBadge: () => setBadge('clear') }
    : {}
  const location = new URL(WORKER_SCOPE)
  const addEventListener = (name: string, listener: (event: any) => void) => listeners.set(name, listener)
  runInContext(code, createContext({ registration, clients, navigator, location, addEventListener, URL }))
  async function send(name: string, event: object): Promise<void> {
    let work: Promise<unknown> | undefined
    listeners.get(name)!({
      ...event,
      waitUntil: (given: Promise<unknown>) => {
        work = given
      },
    })
    await work
  }
  const push = (text: string | null) =>
    send('push', { data: text === null ? null : { text: () => text, json: () => JSON.parse(text) } })
  return { calls, shown, send, push }
}

import { once } from 'node:events'
import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import { Client } from './client.ts'

// A dead link that sends no error is noticed within CHECK_INTERVAL_MS + REPLY_TIMEOUT_MS, 3.5 s.
const CHECK_INTERVAL_MS = 1_500
const REPLY_TIMEOUT_MS = 2_000
const CONNECT_TIMEOUT_MS = 3_000
const CLOSE_GRACE_MS = 500
const RECONNECT_DELAYS_MS = [50, 100, 250, 500, 1_000]

export type Listener = ReturnType<typeof createListener>

/**
 * The one connection on which a process receives notifications (NOTIFY) of other processes. It reconnects by itself.
 * Notifications sent while it is disconnected are lost, so re-read state in `onUp`: a transaction that committed before
 * `onUp` is visible by then, and the notification of one that commits later arrives.
 */
export function createListener(url: string, log: FastifyBaseLogger) {
  const handlers = new Map<string, ((payload: string) => void)[]>()
  const upHandlers: (() => void)[] = []
  const downHandlers: (() => void)[] = []
  const stopping = new AbortController()
  let up = false
  let finished: Promise<void> | undefined

  function setIsUp(next: boolean): void {
    if (up === next) return
    up = next
    for (const handle of up ? upHandlers : downHandlers) handle()
  }

  async function run(): Promise<void> {
    for (let failures = 0; !stopping.signal.aborted; failures += 1) {
      const lost = new AbortController()
      const client = createClient(url, lost)
      client.on('notification', ({ channel, payload = '' }) => {
        for (const handle of handlers.get(channel) ?? []) handle(payload)
      })
      try {
        // If a client ends while it connects, pg never settles the promise of `connect`.
        await Promise.race([client.connect(), once(stopping.signal, 'abort', { signal: lost.signal })])
        if (!stopping.signal.aborted) {
          for (const channel of handlers.keys()) await client.query(`listen "${channel}"`)
          if (failures > 0) log.info('listening to the database again')
          failures = 0
          setIsUp(true)
          await checkUntilLost(client, AbortSignal.any([lost.signal, stopping.signal]))
        }
      } catch (error) {
        // Logged once for each outage, not at every attempt.
        if (!stopping.signal.aborted && failures === 0) log.warn({ err: error }, 'the listening connection is lost')
      }
      setIsUp(false)
      lost.abort()
      await closeConnection(client)
      await pause(RECONNECT_DELAYS_MS[Math.min(failures, RECONNECT_DELAYS_MS.length - 1)]!, stopping.signal)
    }
  }

  return {
    /** Adds a handler for a channel. Call it before `start`. The handler must not throw. */
    on(channel: string, handler: (payload: string) => void): void {
      handlers.set(channel, [...(handlers.get(channel) ?? []), handler])
    },
    onUp: (handler: () => void) => upHandlers.push(handler),
    /** The handler is called as soon as the connection is known to be lost, and when it is closed. */
    onDown: (handler: () => void) => downHandlers.push(handler),
    isUp: () => up,
    start(): void {
      finished ??= run()
    },
    async close(): Promise<void> {
      stopping.abort()
      await finished
    },
  }
}

function createClient(url: string, lost: AbortController): Client {
  const client = new Client({
    connectionString: url,
    application_name: 'courtside-listener',
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: REPLY_TIMEOUT_MS,
    keepAlive: true,
  })
  client.on('error', error => lost.abort(error))
  client.on('end', () => lost.abort(new Error('the connection has ended')))
  return client
}

/**
 * Queries the server from time to time, because nothing else reports a dead link or a primary that became a standby.
 * @throws when the connection is lost or `ended` is aborted
 */
async function checkUntilLost(client: Client, ended: AbortSignal): Promise<void> {
  for (;;) {
    await pause(CHECK_INTERVAL_MS, ended)
    ended.throwIfAborted()
    const { rows } = await client.query<{ standby: boolean }>('select pg_is_in_recovery() as standby')
    if (rows[0]!.standby) throw Object.assign(new Error('the server is a standby now'), { code: 'standby' })
  }
}

/** Ends a connection in any state. Over a dead link it waits only CLOSE_GRACE_MS for pg to close. */
async function closeConnection(client: Client): Promise<void> {
  await Promise.race([client.end().catch(() => {}), delay(CLOSE_GRACE_MS)])
  ;(client as unknown as { connection: { stream: Socket } }).connection.stream.destroy()
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => {})
}

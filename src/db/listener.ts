import { once } from 'node:events'
import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import { Client } from './client.ts'
import { channelName } from './own-schema.ts'
import { parsePostgresUrl } from './postgres-url.ts'

// If a connection dies without an error, the listener detects it within CHECK_INTERVAL_MS + REPLY_TIMEOUT_MS = 3.5 s.
const CHECK_INTERVAL_MS = 1_500
const REPLY_TIMEOUT_MS = 2_000
const CONNECT_TIMEOUT_MS = 3_000
const CLOSE_GRACE_MS = 500
const RECONNECT_DELAYS_MS = [50, 100, 250, 500, 1_000]

export type Listener = ReturnType<typeof createListener>

/**
 * Creates the listener of a process. The listener has the only connection on which the process receives NOTIFY messages
 * from PostgreSQL. The listener reconnects by itself. It loses the messages that are sent while it is disconnected. So
 * each handler that was added with `onUp` must read the current data from the database. If a transaction commits before
 * the listener calls the handler, the handler can read the changes of the transaction. If the transaction commits
 * later, the listener receives the NOTIFY message of the transaction.
 */
export function createListener(url: string, log: FastifyBaseLogger) {
  const { schema } = parsePostgresUrl(url)
  const handlers = new Map<string, ((payload: string) => void)[]>()
  const upHandlers: (() => void)[] = []
  const downHandlers: (() => void)[] = []
  const stopping = new AbortController()
  let up = false
  /** The number of connections that have failed or been lost since `listen` last succeeded. */
  let failures = 0
  let finished: Promise<void> | undefined

  function setIsUp(next: boolean): void {
    if (up === next) return
    up = next
    for (const handle of up ? upHandlers : downHandlers) handle()
  }

  /** Listens until the connection is lost or the listener closes, then throws. */
  async function listen(client: Client, ended: AbortSignal): Promise<void> {
    for (const channel of handlers.keys()) await client.query(`listen "${channel}"`)
    if (failures > 0) log.info('listening to the database again')
    failures = 0
    setIsUp(true)
    await checkUntilLost(client, ended)
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      const lost = new AbortController()
      const client = createClient(url, lost)
      client.on('notification', ({ channel, payload = '' }) => {
        for (const handle of handlers.get(channel) ?? []) handle(payload)
      })
      try {
        // If a client ends while it connects, pg never settles the promise of `connect`. In this case, the client's
        // `end` handler aborts `lost`, and this abort ends the race below.
        await Promise.race([client.connect(), once(stopping.signal, 'abort', { signal: lost.signal })])
        if (!stopping.signal.aborted) await listen(client, AbortSignal.any([lost.signal, stopping.signal]))
      } catch (error) {
        // The listener logs one warning per outage instead of one per attempt.
        if (!stopping.signal.aborted && failures === 0) log.warn({ err: error }, 'the listening connection is lost')
      }
      setIsUp(false)
      lost.abort()
      await closeConnection(client)
      await pause(RECONNECT_DELAYS_MS[Math.min(failures, RECONNECT_DELAYS_MS.length - 1)]!, stopping.signal)
      failures += 1
    }
  }

  return {
    /** Adds a handler for a channel. Call this method before `start`. The handler must not throw. */
    on(channel: string, handler: (payload: string) => void): void {
      const name = channelName(schema, channel)
      handlers.set(name, [...(handlers.get(name) ?? []), handler])
    },
    onUp: (handler: () => void) => upHandlers.push(handler),
    /** Adds a handler. The listener calls the handler when the connection is lost, and when the listener closes. */
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
    keepAliveInitialDelayMillis: 30_000,
  })
  client.on('error', error => lost.abort(error))
  client.on('end', () => lost.abort(new Error('the connection has ended')))
  return client
}

/**
 * Queries the server regularly, because nothing else reports a dead connection or a primary that became a standby.
 * @throws if the connection is lost or `ended` is aborted
 * @throws if the server is a standby
 */
async function checkUntilLost(client: Client, ended: AbortSignal): Promise<void> {
  for (;;) {
    await pause(CHECK_INTERVAL_MS, ended)
    ended.throwIfAborted()
    const { rows } = await client.query<{ standby: boolean }>('select pg_is_in_recovery() as standby')
    if (rows[0]!.standby) throw Object.assign(new Error('the server is a standby now'), { code: 'standby' })
  }
}

/** Closes a connection in any state. Waits at most CLOSE_GRACE_MS for pg, because a dead connection sends no reply. */
async function closeConnection(client: Client): Promise<void> {
  await Promise.race([client.end().catch(() => {}), delay(CLOSE_GRACE_MS)])
  ;(client as unknown as { connection: { stream: Socket } }).connection.stream.destroy()
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => {})
}

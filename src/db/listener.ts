import { once } from 'node:events'
import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import { Client } from './client.ts'

// A link that is dead without a word is noticed after 3.5 s at the latest.
const ASK_MS = 1_500
const ANSWER_MS = 2_000
const CONNECT_MS = 3_000
const CLOSE_GRACE_MS = 500
const BACK_OFF_MS = [50, 100, 250, 500, 1_000]

export type Listener = ReturnType<typeof createListener>

/**
 * The one connection on which a process hears what others notify it of. It comes back by itself; what was notified while it was
 * down is lost, so that whoever trusts it must look for themselves each time it is up again. All that committed before `onUp` is
 * called can be seen by then; all that commits later is heard.
 */
export function createListener(url: string, log: FastifyBaseLogger) {
  const handlers = new Map<string, ((payload: string) => void)[]>()
  const whenUp: (() => void)[] = []
  const whenDown: (() => void)[] = []
  const stopping = new AbortController()
  let up = false
  let ran: Promise<void> | undefined

  function setUp(next: boolean): void {
    if (up === next) return
    up = next
    for (const react of up ? whenUp : whenDown) react()
  }

  async function run(): Promise<void> {
    for (let failures = 0; !stopping.signal.aborted; failures += 1) {
      const lost = new AbortController()
      const client = connection(url, lost)
      client.on('notification', ({ channel, payload = '' }) => {
        for (const handle of handlers.get(channel) ?? []) handle(payload)
      })
      try {
        // pg leaves whoever waits for a connection waiting when it is told to end meanwhile.
        await Promise.race([client.connect(), once(stopping.signal, 'abort', { signal: lost.signal })])
        if (!stopping.signal.aborted) {
          for (const channel of handlers.keys()) await client.query(`listen "${channel}"`)
          if (failures > 0) log.info('listening to the database again')
          failures = 0
          setUp(true)
          await stayWith(client, AbortSignal.any([lost.signal, stopping.signal]))
        }
      } catch (error) {
        // Told once an outage, not at every attempt.
        if (!stopping.signal.aborted && failures === 0) log.warn({ err: error }, 'the listening connection is lost')
      }
      setUp(false)
      lost.abort()
      await closeConnection(client)
      await pause(BACK_OFF_MS[Math.min(failures, BACK_OFF_MS.length - 1)]!, stopping.signal)
    }
  }

  return {
    /** Hears of a channel; to be called before `start`. The handler must not throw. */
    on(channel: string, handler: (payload: string) => void): void {
      handlers.set(channel, [...(handlers.get(channel) ?? []), handler])
    },
    onUp: (react: () => void) => whenUp.push(react),
    /** Called at once when the connection is known to be lost, and when it is closed. */
    onDown: (react: () => void) => whenDown.push(react),
    isUp: () => up,
    start(): void {
      ran ??= run()
    },
    async close(): Promise<void> {
      stopping.abort()
      await ran
    },
  }
}

function connection(url: string, lost: AbortController): Client {
  const client = new Client({
    connectionString: url,
    application_name: 'courtside-listener',
    connectionTimeoutMillis: CONNECT_MS,
    query_timeout: ANSWER_MS,
    keepAlive: true,
  })
  client.on('error', error => lost.abort(error))
  client.on('end', () => lost.abort(new Error('the connection has ended')))
  return client
}

/**
 * Until the connection is lost, or no longer wanted; then it throws. It asks from time to time, since a link may be dead, or its
 * server a primary no more, without our being told.
 */
async function stayWith(client: Client, ended: AbortSignal): Promise<void> {
  for (;;) {
    await pause(ASK_MS, ended)
    ended.throwIfAborted()
    const { rows } = await client.query<{ standby: boolean }>('select pg_is_in_recovery() as standby')
    if (rows[0]!.standby) throw Object.assign(new Error('it is a standby now'), { code: 'standby' })
  }
}

/** Ends a connection, in whatever state it is. The goodbye of one whose link is dead is not waited for. */
async function closeConnection(client: Client): Promise<void> {
  await Promise.race([client.end().catch(() => {}), delay(CLOSE_GRACE_MS)])
  ;(client as unknown as { connection: { stream: Socket } }).connection.stream.destroy()
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => {})
}

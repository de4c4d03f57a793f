import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import type { Server } from './launch.ts'

const RESTART_DELAYS_MS = [0, 250, 500, 1_000, 2_000, 5_000]
/** If a server has run for longer than this, the next restart uses the first delay of the list again. */
const HEALTHY_MS = 60_000

/** A server that is started again when it ends. */
export type Supervisor = {
  /** The number of times that the server has been started again. */
  restarts(): number
  /** Stops the server within 9 s. Afterwards it is not started again. */
  stop(): Promise<void>
  /** Stops the server immediately, without writing to the data folder. Afterwards it is not started again. */
  abort(): void
}

/**
 * Starts a server again whenever it ends by itself, for example because the system killed it for lack of memory.
 * @param start stops any remaining process of the previous server, and starts a new server. Its signal aborts when the
 *   supervisor stops
 */
export function supervise(
  first: Server,
  start: (signal: AbortSignal) => Promise<Server>,
  log: FastifyBaseLogger,
): Supervisor {
  const stopping = new AbortController()
  const stopped = once(stopping.signal, 'abort')
  let server: Server = first
  let restarts = 0

  async function run(): Promise<void> {
    let failures = 0
    let startedAt = performance.now()
    while (!stopping.signal.aborted) {
      await Promise.race([server.ended, stopped])
      if (stopping.signal.aborted) return
      if (performance.now() - startedAt > HEALTHY_MS) failures = 0
      const delayMs = RESTART_DELAYS_MS[Math.min(failures, RESTART_DELAYS_MS.length - 1)]!
      log.error({ delayMs }, 'the embedded PostgreSQL has ended; starting it again')
      await delay(delayMs, undefined, { ref: false, signal: stopping.signal }).catch(() => {})
      if (stopping.signal.aborted) return
      failures += 1
      try {
        server = await start(stopping.signal)
        restarts += 1
        startedAt = performance.now()
        log.info('the embedded PostgreSQL runs again')
      } catch (error) {
        if (stopping.signal.aborted) return
        // `postgres.log` contains the reason.
        log.error({ err: error }, 'the embedded PostgreSQL does not start')
      }
    }
  }

  const finished = run()
  return {
    restarts: () => restarts,
    async stop() {
      stopping.abort()
      await finished
      if (server.isRunning()) await server.stop()
    },
    abort() {
      stopping.abort()
      server.abort()
    },
  }
}

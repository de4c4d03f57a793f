import { setTimeout as delay } from 'node:timers/promises'
import { KEY_LOOKUPS } from '../db/connection-config.ts'
import { connect } from '../db/sql.ts'
import type { Channel, WorkerDependencies } from './channel.ts'
import { Worker } from './worker.ts'

/** The number of connections for the statements of all workers of a process. */
const CONNECTIONS = 4

export type Workers = {
  /** Makes the workers claim rows immediately. */
  wake(): void
  /** Stops the workers. They claim no more rows, and have up to 7 s for the deliveries that run. */
  stop(): Promise<void>
}

/** Starts one worker for each channel. The workers share a few connections. */
export function startWorkers(url: string, channels: readonly Channel[], deps: WorkerDependencies): Workers {
  const sql = connect(url, { connections: CONNECTIONS, name: 'courtside-worker', planner: KEY_LOOKUPS })
  const workers = channels.map(channel => new Worker(sql, channel, deps))
  let stopped: Promise<void> | undefined
  async function close(): Promise<void> {
    await Promise.all(workers.map(worker => worker.stop()))
    await Promise.race([sql.close(), delay(1_000, undefined, { ref: false })])
  }
  return {
    wake: () => {
      for (const worker of workers) worker.wake()
    },
    stop: () => {
      stopped ??= close()
      return stopped
    },
  }
}

import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import { createApp } from './app.ts'
import { sendCode } from './auth/code-email.ts'
import type { Config } from './config.ts'
import { type Bootstrap, type Context, createContext } from './context.ts'
import { isUnreachable } from './db/errors.ts'
import { isCurrent, migrate } from './db/migrate.ts'
import type { Database } from './db/sql.ts'
import { AppError } from './errors.ts'
import { startSchedule } from './games/schedule.ts'
import { startPruning } from './retention.ts'

const WORKER_START_DELAY_MS = 50

type Lifecycle = {
  /** To this array, `openService` adds functions that close the node. The caller must call them in reverse order. */
  closers: (() => Promise<unknown>)[]
  /** Aborts when the node must stop. The node answers requests until the caller calls the closers. */
  stopping: AbortSignal
}

/**
 * Starts a node: migrates the database and listens for requests. If `config.works` is true, `openService` starts the
 * workers of the node too.
 * @returns the address at which the node listens
 */
export async function openService(
  config: Config,
  log: Logger,
  bootstrap: Bootstrap,
  { closers, stopping }: Lifecycle,
): Promise<string> {
  const ctx = createContext(config, log, bootstrap, { stopping })
  closers.push(ctx.close)
  // The caller calls the closers in reverse order, so the workers stop after the app has closed. Until then, a worker
  // runs the jobs from the last requests.
  const stopFunctions: (() => Promise<unknown>)[] = []
  closers.push(() => Promise.all(stopFunctions.map(stop => stop())))
  const [app] = await Promise.all([createApp(ctx), migrateWhenReachable(ctx.sql, bootstrap.databaseUrl, log)])
  closers.push(() => app.close())
  const address = await app.listen({ host: config.host, port: config.port })
  if (config.works) stopFunctions.push(...(await startWorkers(ctx, bootstrap.databaseUrl)))
  return address
}

/** Starts the workers. Call this after the node has begun to listen. @returns the functions that stop the workers */
async function startWorkers(ctx: Context, databaseUrl: string): Promise<(() => Promise<unknown>)[]> {
  // Loading the code of the queue blocks the event loop for about 100 ms. The delay gives the node time to answer the
  // first readiness checks before the event loop is blocked.
  await delay(WORKER_START_DELAY_MS)
  const { startWorker } = await import('./jobs/queue.ts')
  const { sql, config, log, now, metrics } = ctx
  const worker = await startWorker(databaseUrl, { send_code: sendCode(ctx) }, { log })
  const clock = () => ({ now: now(), timeZone: config.timeZone })
  const schedule = startSchedule(sql, clock, log, ({ type, outcome, lateSeconds }) =>
    metrics.countDueTime(type, outcome, lateSeconds),
  )
  return [worker.stop, schedule.stop, startPruning(sql, config, now, log).stop]
}

/** Updates the schema of the database. If the database is not reachable yet, waits up to 30 s for the database. */
async function migrateWhenReachable(sql: Database, databaseUrl: string, log: Logger): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      // This statement also opens a connection that the first request can use.
      if (await isCurrent(sql)) return
      const applied = await migrate(databaseUrl)
      if (applied.length > 0) log.info({ applied }, 'migrated')
      return
    } catch (error) {
      const cause = error instanceof AppError ? error.cause : error
      if (!isUnreachable(cause) || attempt >= 30) throw cause
      log.warn({ attempt }, 'the database is not reachable yet')
      await delay(1_000)
    }
  }
}

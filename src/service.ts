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

/**
 * Opens a node: migrates the database, listens, and starts the workers if the role has any.
 * @param closers receives the functions that close the node; call them in reverse order
 * @returns the address at which the node listens
 */
export async function openService(
  config: Config,
  log: Logger,
  bootstrap: Bootstrap,
  closers: (() => Promise<unknown>)[],
): Promise<string> {
  const ctx = createContext(config, log, bootstrap)
  closers.push(ctx.close)
  // The workers stop after the app, so the last accepted requests still have a worker.
  const workerStops: (() => Promise<unknown>)[] = []
  closers.push(() => Promise.all(workerStops.map(stop => stop())))
  const [app] = await Promise.all([createApp(ctx), migrateWhenReachable(ctx.sql, bootstrap.databaseUrl, log)])
  closers.push(() => app.close())
  const address = await app.listen({ host: config.host, port: config.port })
  if (config.works) workerStops.push(...(await startWorkers(ctx, bootstrap.databaseUrl)))
  return address
}

/** Starts the workers, after the node listens. @returns the functions that stop them */
async function startWorkers(ctx: Context, databaseUrl: string): Promise<(() => Promise<unknown>)[]> {
  // Loading the queue's code blocks the event loop for ~100 ms. The delay lets readiness checks through first.
  await delay(WORKER_START_DELAY_MS)
  const { startWorker } = await import('./jobs/queue.ts')
  const { sql, config, log, now, metrics } = ctx
  const worker = await startWorker(databaseUrl, { send_code: sendCode(ctx) }, { log })
  const clock = () => ({ now: now(), timeZone: config.timeZone })
  const schedule = startSchedule(sql, clock, log, ({ type, outcome, lateSeconds }) =>
    metrics.fired(type, outcome, lateSeconds),
  )
  return [worker.stop, schedule.stop, startPruning(sql, config, now, log).stop]
}

/** Brings the schema up to date. Waits up to 30 s for a database that is still starting. */
async function migrateWhenReachable(sql: Database, databaseUrl: string, log: Logger): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      // The statement also opens the connection for the first request.
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

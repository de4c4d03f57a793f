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
 * Opens a node: migrates the database, listens and starts the worker, as far as its role goes.
 * @param opened gets what is to be closed later, newest last
 * @returns the address it listens at
 */
export async function openService(
  config: Config,
  log: Logger,
  found: Bootstrap,
  opened: (() => Promise<unknown>)[],
): Promise<string> {
  const ctx = createContext(config, log, found)
  opened.push(ctx.close)
  // Closed after the app, so that at the end nothing is accepted that nobody works at.
  const working: (() => Promise<unknown>)[] = []
  opened.push(() => Promise.all(working.map(stop => stop())))
  const [app] = await Promise.all([createApp(ctx), migrated(ctx.sql, found.databaseUrl, log)])
  opened.push(() => app.close())
  const address = await app.listen({ host: config.host, port: config.port })
  if (config.works) working.push(...(await openWorker(ctx, found.databaseUrl)))
  return address
}

/** Its code is read when the node listens already: nobody waits for it. @returns what stops it */
async function openWorker(ctx: Context, databaseUrl: string): Promise<(() => Promise<unknown>)[]> {
  // Reading it holds up everything for a tenth of a second: first those hear that we are ready who wait for that.
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

/** Brings the schema up to date; a database that is still starting is waited for. */
async function migrated(sql: Database, databaseUrl: string, log: Logger): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      // Asked on a connection that the first request then finds open.
      if (await isCurrent(sql)) return
      const applied = await migrate(databaseUrl)
      if (applied.length > 0) log.info({ applied }, 'migrated')
      return
    } catch (error) {
      const fault = error instanceof AppError ? error.cause : error
      if (!isUnreachable(fault) || attempt >= 30) throw fault
      log.warn({ attempt }, 'the database cannot be reached yet')
      await delay(1_000)
    }
  }
}

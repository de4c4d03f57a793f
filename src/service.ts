import { setTimeout as delay } from 'node:timers/promises'
import type { Logger } from 'pino'
import { createApp } from './app.ts'
import { startChannels } from './channels.ts'
import type { Config } from './config.ts'
import { type Bootstrap, type Context, createContext } from './context.ts'
import { HINT_CHANNEL } from './db/channels.ts'
import { hasOtherCollation } from './db/collation.ts'
import { isStale, isUnreachable } from './db/errors.ts'
import { readHints } from './db/hints.ts'
import { isCurrent, migrate } from './db/migrate.ts'
import { findSchema } from './db/own-schema.ts'
import { AppError } from './errors.ts'
import { startSchedule } from './games/schedule.ts'
import { explainListenError } from './http/listen-error.ts'
import { isCodeClass } from './limits/mail-backlog.ts'
import type { ObservedAttempt } from './outbox/channel.ts'
import { startWorkers } from './outbox/workers.ts'
import { findStartWarnings } from './reach/start-warnings.ts'
import { startPruning } from './retention.ts'

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
  const { url: databaseUrl, schema } = await whenReady(log, () =>
    findSchema(bootstrap.databaseUrl, config.databaseSchema),
  )
  if (schema !== config.databaseSchema) log.info({ schema }, 'using the tables of an earlier version in their schema')
  const ctx = createContext(config, log, { ...bootstrap, databaseUrl }, { stopping })
  closers.push(ctx.close)
  // The caller calls the closers in reverse order, so the workers stop after the app has closed. Until then, a worker
  // runs the jobs from the last requests.
  const stopFunctions: (() => Promise<unknown>)[] = []
  closers.push(() => Promise.all(stopFunctions.map(stop => stop())))
  const [app] = await Promise.all([createApp(ctx), prepareDatabase(ctx, databaseUrl)])
  closers.push(() => app.close())
  ctx.clock.start()
  stopFunctions.push(ctx.clock.stop)
  let wake = () => {}
  // The handler must be added before the listener starts, and the app starts the listener when it begins to listen.
  if (config.works) ctx.listener.on(HINT_CHANNEL, payload => readHints(payload).hasDelivery && wake())
  const address = await app.listen({ host: config.host, port: config.port }).catch(error => {
    throw explainListenError(error, config)
  })
  for (const warning of findStartWarnings(config)) log.warn(warning)
  if (config.works) {
    ctx.listener.start()
    const workers = startWork(ctx, databaseUrl, address)
    stopFunctions.push(...workers.stopFunctions)
    wake = workers.wake
  }
  ctx.mailBacklog.start()
  stopFunctions.push(ctx.mailBacklog.stop)
  return address
}

/**
 * Starts the workers. Call this after the node has begun to listen.
 * @returns the functions that stop the workers, and a function that makes them claim rows of the outbox
 */
function startWork(ctx: Context, databaseUrl: string, address: string) {
  const { sql, config, log, now, metrics } = ctx
  const observe = ({ channel, class: attemptClass, outcome, seconds, isFirst }: ObservedAttempt) => {
    const isCode = channel === 'mail' && isCodeClass(attemptClass)
    metrics.countAttempt(channel === 'mail' && !isCode ? 'digest' : channel, outcome, seconds)
    if (isFirst && isCode) ctx.mailBacklog.countAttempt()
  }
  const { channels, stop } = startChannels(ctx, address)
  const workers = startWorkers(databaseUrl, channels, { log, now, observe })
  const clock = () => ({ now: now(), timeZone: config.timeZone })
  const schedule = startSchedule(ctx, clock, log, ({ type, outcome, lateSeconds }) =>
    metrics.countDueTime(type, outcome, lateSeconds),
  )
  const pruning = startPruning(sql, config, now, log)
  const stopChannels = () => workers.stop().finally(stop)
  return { wake: workers.wake, stopFunctions: [stopChannels, schedule.stop, pruning.stop] }
}

const OTHER_COLLATION =
  'the sort order of texts has changed under the database, perhaps by an upgrade of the operating system: rebuild the ' +
  'indexes of other applications with "reindex database", then run "alter database … refresh collation version"'

/** Updates the schema of the database, and measures its clock. */
async function prepareDatabase({ sql, clock, log }: Context, databaseUrl: string): Promise<void> {
  await whenReady(log, async () => {
    // This statement also opens a connection that the first request can use.
    const applied = (await isCurrent(sql)) ? [] : await migrate(databaseUrl)
    if (applied.length > 0) log.info({ applied }, 'migrated')
    await clock.measure()
    if (await hasOtherCollation(sql)) log.warn(OTHER_COLLATION)
  })
}

/**
 * Runs `work`. If the database is not reachable yet, tries again for up to 30 s. Also tries again, on a new connection,
 * if another process has migrated the database meanwhile and a prepared statement of this process has become stale.
 */
async function whenReady<T>(log: Context['log'], work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work()
    } catch (error) {
      const cause = error instanceof AppError ? error.cause : error
      if (!(isUnreachable(cause) || isStale(cause)) || attempt >= 30) throw cause
      const { message, code } = cause as NodeJS.ErrnoException
      log.warn({ attempt, reason: message || code }, 'the database is not ready yet')
      await delay(1_000)
    }
  }
}

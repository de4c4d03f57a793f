import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { readConfig } from '../config.ts'
import { createLog } from '../log.ts'
import { requireFreeAddress } from './check-address.ts'
import { resolveDatabase } from './resolve-database.ts'
import { showAddresses } from './show-addresses.ts'
import { watchStopSignals } from './stop-signals.ts'
import { readArguments } from './usage.ts'

/** The service must close within 10 s. A limit of 9 s leaves one second for the exit itself. */
const CLOSE_TIMEOUT_MS = 9_000
/** An open socket, such as the connection of an unfinished mail, keeps the process running for at most this time. */
const EXIT_TIMEOUT_MS = 250

/** `courtside serve`: runs until SIGTERM, SIGINT or SIGHUP. */
export async function run(args: string[]): Promise<void> {
  if (!readArguments(args, 'serve', 'Runs the service. Settings come from the environment.')) return
  const config = readConfig(process.env)
  const log = await createLog(config.logLevel)
  limitNameLookups()
  const stopping = watchStopSignals()
  // A process that is still starting has no work to finish. The limit also ends a process that waits for a database, or
  // for the migration of another process.
  let closeTimer: NodeJS.Timeout | undefined
  const limitStartup = () => {
    closeTimer = exitAfterTimeout()
  }
  stopping.addEventListener('abort', limitStartup)
  stopping.addEventListener('abort', () => log.info('stopping'))
  // Each step of the startup adds functions that undo the step. The `finally` block below calls all these functions in
  // reverse order.
  const closers: (() => Promise<unknown>)[] = []
  try {
    await requireFreeAddress(config)
    // Loading the service's code blocks the event loop. So this process loads the code while it has nothing to do
    // except wait for the database.
    const waiting = Promise.withResolvers<void>()
    const [{ intakeKeyPath, ...bootstrap }, { openService }] = await Promise.all([
      resolveDatabase(config, log, closers, waiting.resolve),
      waiting.promise.then(() => import('../service.ts')),
    ])
    const address = await openService(config, log, bootstrap, { closers, stopping })
    showAddresses(log, config, address, { intakeKeyPath, mailboxKey: bootstrap.mailboxKey })
    if (!stopping.aborted) {
      stopping.removeEventListener('abort', limitStartup)
      await once(stopping, 'abort')
      await delay(config.stopDelayMs)
    }
  } finally {
    closeTimer ??= exitAfterTimeout()
    for (const close of closers.reverse()) await close().catch(error => log.error({ err: error }, 'could not close'))
    clearTimeout(closeTimer)
    setTimeout(() => process.exit(), EXIT_TIMEOUT_MS).unref()
  }
  log.info('stopped')
}

/**
 * Makes the C library give up on a silent DNS server after three seconds instead of fifteen. A process cannot exit
 * while it looks up a name, because the look-up runs in a thread. The variable of an operator counts before this one.
 */
function limitNameLookups(): void {
  process.env.RES_OPTIONS ??= 'timeout:1 attempts:2'
}

/** Ends the process with the exit code 1 if it still runs after CLOSE_TIMEOUT_MS. */
function exitAfterTimeout(): NodeJS.Timeout {
  return setTimeout(() => process.exit(1), CLOSE_TIMEOUT_MS).unref()
}

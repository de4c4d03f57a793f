import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import { type JobHelpers, Logger, runTaskList, type WorkerPool } from 'graphile-worker'
import type pg from 'pg'
import { isUnreachable } from '../db/errors.ts'
import { connect } from '../db/sql.ts'
import { describeError } from '../log.ts'
import { WorkerHeartbeat } from './worker-heartbeat.ts'

export type Task = (payload: unknown) => Promise<void>

/**
 * The maximum number of jobs of one name that run at the same time in one process. Jobs mostly wait for the network, so
 * they need little CPU time.
 */
const CONCURRENCY = 4
/** How often the queue polls. Polling finds postponed jobs, and new jobs whose NOTIFY message was lost. */
const POLL_MS = 2_000
const RETRY_MS = 100
// How long `stop` waits for running jobs. The whole shutdown may take 10 s, and up to 2 s of this time are for closing
// the connections.
const FINISH_MS = 7_000

/**
 * Starts a worker, which runs jobs until it is stopped. Each job runs at least once. Each job name has its own pool of
 * workers, so if a mail server does not reply, only mails are delayed. A failed job is retried after about 3 s, then
 * after 7 s, and then every 20 s. The queue does not check whether a retry comes too late. The code of each task must
 * do this check.
 * @param url the URL of the database
 * @param tasks the tasks by job name
 * @returns `stop`, which stops the worker. The worker then takes no new jobs, waits up to 7 s for running jobs, and
 *   closes the connections. Another worker later runs the unfinished jobs from the beginning
 */
export async function startWorker(
  url: string,
  tasks: Record<string, Task>,
  { log }: { log: FastifyBaseLogger },
): Promise<{ stop(): Promise<void> }> {
  const names = Object.keys(tasks)
  // Each pool of workers listens on one connection. The heartbeat uses one connection, and two connections while it
  // replaces its connection. Three more connections run statements.
  const database = connect(url, { max: names.length + 5, name: 'courtside-worker' })
  const pools = new Map<string, WorkerPool>()
  const heartbeat = new WorkerHeartbeat(database.pool, log)
  const patient = retryingPool(database.pool, heartbeat, () => stopped !== undefined)
  let stopped: Promise<void> | undefined

  function start(name: string): void {
    const pool = runTaskList(
      options(log),
      { [name]: wrapTask(name, tasks[name]!, { log, heartbeat, patient }) },
      patient,
    )
    pools.set(name, pool)
    heartbeat.join(pool.id)
    const over = () => {
      pools.delete(name)
      heartbeat.leave(pool.id)
      if (stopped) return
      log.error({ task: name }, 'the queue stopped unexpectedly and is started again')
      setTimeout(() => stopped ?? start(name), 1_000)
    }
    pool.promise.then(over, over)
  }

  async function close(): Promise<void> {
    const graceful = [...pools.values()].map(async pool => pool.gracefulShutdown())
    await Promise.race([Promise.allSettled(graceful), delay(FINISH_MS, undefined, { ref: false })])
    await Promise.race([heartbeat.close(), delay(1_000, undefined, { ref: false })])
    await Promise.race([database.close(), delay(1_000, undefined, { ref: false })])
  }

  function stop(): Promise<void> {
    stopped ??= close()
    return stopped
  }

  for (const name of names) start(name)
  heartbeat.start()
  return { stop }
}

function options(log: FastifyBaseLogger) {
  return {
    noHandleSignals: true,
    concurrency: CONCURRENCY,
    pollInterval: POLL_MS,
    // Logs only the message, because the metadata of the message contains whole jobs.
    logger: new Logger(() => (_level, message) => log.debug({ from: 'queue' }, message)),
    // With these two options, graphile-worker marks finished jobs in batches, with one statement for each batch. With a
    // delay of 0 ms, a batch contains the jobs that finish in one tick of the event loop. Without batches,
    // graphile-worker would send a statement for each job and not wait for the reply. A failed statement would then end
    // the process, and `gracefulShutdown` would not wait for a running statement.
    preset: { worker: { completeJobBatchDelay: 0, failJobBatchDelay: 0 } },
  }
}

/**
 * Creates the connection pool for graphile-worker, called "the library" here. The pool hides lost connections from the
 * library. If the library noticed a lost connection, it would sleep for minutes or stop. The library might also run a
 * finished job a second time, because it could not mark the job as completed. So each statement waits until the
 * database is reachable and this process holds the locks of its workers (see worker-heartbeat.ts). If a statement fails
 * because the database is unreachable, the pool repeats the statement. The statements of the library do not depend on
 * each other, so the pool can repeat each statement alone.
 */
function retryingPool(pool: pg.Pool, heartbeat: WorkerHeartbeat, stopping: () => boolean): pg.Pool {
  async function query(config: pg.QueryConfig): Promise<Pick<pg.QueryResult, 'rows'>> {
    for (;;) {
      // While the worker stops, only statements that complete or fail a job are still needed.
      if (stopping() && !/^(complete|fail)_job/.test(config.name ?? '')) return { rows: [] }
      if (heartbeat.closed) throw new Error('the worker has stopped')
      try {
        if (heartbeat.held) return await pool.query(config)
      } catch (error) {
        if (!isUnreachable(error)) throw error
      }
      await delay(RETRY_MS)
    }
  }
  // The library passes a callback if it asks for the connection on which it listens for new jobs. The library itself
  // replaces this connection after a loss, so this function passes on a connection of `pool` unchanged.
  const connect = (callback?: Parameters<pg.Pool['connect']>[0]) =>
    callback ? pool.connect(callback) : Promise.resolve({ query, release() {} })
  return { connect, query, options: pool.options } as unknown as pg.Pool
}

type TaskDependencies = { log: FastifyBaseLogger; heartbeat: WorkerHeartbeat; patient: pg.Pool }

/**
 * Wraps a task for graphile-worker. The wrapper replaces an error with a short reason, because graphile-worker stores
 * the error in the job's row.
 */
function wrapTask(name: string, task: Task, { log, heartbeat, patient }: TaskDependencies) {
  return async (payload: unknown, { job }: JobHelpers): Promise<void> => {
    heartbeat.begin(String(job.id))
    try {
      await task(payload)
    } catch (error) {
      const fault = describeError(error)
      log.warn({ task: name, job: job.id, attempt: job.attempts, ...fault }, 'a job failed and will be tried again')
      // The library waits e^attempts seconds before a retry. Sign-in codes are valid for only 15 min, so this statement
      // limits the wait to 20 s: it keeps `attempts` at 3 or less. If a job still fails one day after its creation, the
      // cause is a bug. So the statement does not change a job that is older than one day. The column `attempts` of
      // such a job grows to its maximum, and the library then gives the job up.
      await patient.query({
        text: `update graphile_worker._private_jobs set attempts = least(attempts, 3)
          where id = $1 and created_at > now() - interval '1 day'`,
        values: [job.id],
      })
      throw new Error(fault.reason)
    }
  }
}

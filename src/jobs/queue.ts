import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import { type JobHelpers, Logger, runTaskList, type WorkerPool } from 'graphile-worker'
import type pg from 'pg'
import { isUnreachable } from '../db/errors.ts'
import { connect } from '../db/sql.ts'
import { describeError } from '../log.ts'
import { WorkerHeartbeat } from './worker-heartbeat.ts'

export type Task = (payload: unknown) => Promise<void>

/** Jobs of one name that run at once in one process. They mostly wait for a socket. */
const CONCURRENCY = 4
/** The net under LISTEN, and how soon after its time a job that was put off is seen. */
const POLL_MS = 2_000
const RETRY_MS = 100
// "finish what runs, close, within 10 s"
const FINISH_MS = 7_000

/**
 * Runs jobs, at least once each, until stopped. Each name has a pool of its own, so that a silent mail server holds up
 * mails and nothing else. A failed job is tried again after some 3, 7, and then every 20 s; whoever wrote the task decides
 * when it is too late.
 * @param url the database's
 * @param tasks by the names under which their jobs are added
 * @returns `stop`: takes no new jobs, lets the running ones finish for 7 s, and closes its connections. What isn't
 *   finished then is left to the next worker, like the jobs of a killed one.
 */
export async function startWorker(
  url: string,
  tasks: Record<string, Task>,
  { log }: { log: FastifyBaseLogger },
): Promise<{ stop(): Promise<void> }> {
  const names = Object.keys(tasks)
  // One connection a pool listens, two show that we are alive (for a moment), and three work.
  const database = connect(url, { max: names.length + 5, name: 'courtside-worker' })
  const pools = new Map<string, WorkerPool>()
  const presence = new WorkerHeartbeat(database.pool, log)
  const patient = retryingPool(database.pool, presence, () => stopped !== undefined)
  let stopped: Promise<void> | undefined

  function start(name: string): void {
    const pool = runTaskList(
      options(log),
      { [name]: wrapTask(name, tasks[name]!, { log, presence, patient }) },
      patient,
    )
    pools.set(name, pool)
    presence.join(pool.id)
    const over = () => {
      pools.delete(name)
      presence.leave(pool.id)
      if (stopped) return
      log.error({ task: name }, 'the queue gave up unexpectedly and is started again')
      setTimeout(() => stopped ?? start(name), 1_000)
    }
    pool.promise.then(over, over)
  }

  async function close(): Promise<void> {
    const graceful = [...pools.values()].map(async pool => pool.gracefulShutdown())
    await Promise.race([Promise.allSettled(graceful), delay(FINISH_MS, undefined, { ref: false })])
    await Promise.race([presence.close(), delay(1_000, undefined, { ref: false })])
    await Promise.race([database.close(), delay(1_000, undefined, { ref: false })])
  }

  function stop(): Promise<void> {
    stopped ??= close()
    return stopped
  }

  for (const name of names) start(name)
  presence.start()
  return { stop }
}

function options(log: FastifyBaseLogger) {
  return {
    noHandleSignals: true,
    concurrency: CONCURRENCY,
    pollInterval: POLL_MS,
    // Only the sentence: what comes with it holds whole jobs.
    logger: new Logger(() => (_level, message) => log.debug({ from: 'queue' }, message)),
    // Batches, if only of what falls into one tick: by themselves the library's completions are awaited by nobody, so that
    // one that fails ends the process, and a stop doesn't wait for it.
    preset: { worker: { completeJobBatchDelay: 0, failJobBatchDelay: 0 } },
  }
}

/**
 * The pool as the library sees it. It has to be told of no lost connection: after one it sleeps for minutes or gives up, and
 * a mail that was sent but couldn't be ticked off would be sent again. So a statement waits until the database is
 * back, and until our lock is held. Every one of the library's statements stands by itself and may be repeated.
 */
function retryingPool(pool: pg.Pool, presence: WorkerHeartbeat, stopping: () => boolean): pg.Pool {
  async function query(config: pg.QueryConfig): Promise<Pick<pg.QueryResult, 'rows'>> {
    for (;;) {
      // While stopping, only what ticks a job off, or puts it off, is still worth waiting for.
      if (stopping() && !/^(complete|fail)_job/.test(config.name ?? '')) return { rows: [] }
      if (presence.closed) throw new Error('the worker has stopped')
      try {
        if (presence.held) return await pool.query(config)
      } catch (error) {
        if (!isUnreachable(error)) throw error
      }
      await delay(RETRY_MS)
    }
  }
  // With a callback it asks for the connection that listens; that one it knows how to replace.
  const connect = (callback?: Parameters<pg.Pool['connect']>[0]) =>
    callback ? pool.connect(callback) : Promise.resolve({ query, release() {} })
  return { connect, query, options: pool.options } as unknown as pg.Pool
}

type TaskDependencies = { log: FastifyBaseLogger; presence: WorkerHeartbeat; patient: pg.Pool }

/** A task as the library calls it: what it throws is stripped to its kind, since it is kept in the job's row. */
function wrapTask(name: string, task: Task, { log, presence, patient }: TaskDependencies) {
  return async (payload: unknown, { job }: JobHelpers): Promise<void> => {
    presence.begin(String(job.id))
    try {
      await task(payload)
    } catch (error) {
      const fault = describeError(error)
      log.warn({ task: name, job: job.id, attempt: job.attempts, ...fault }, 'a job failed and will be tried again')
      // The library waits e^attempts seconds. That is too long for a code that lives 15 min, so it is held at 20 s; a job
      // that fails for a day is a fault of ours, and may run out of attempts.
      await patient.query({
        text: `update graphile_worker._private_jobs set attempts = least(attempts, 3)
          where id = $1 and created_at > now() - interval '1 day'`,
        values: [job.id],
      })
      throw new Error(fault.reason)
    }
  }
}

import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import type pg from 'pg'

// Each worker holds a lock in PostgreSQL (see `WorkerHeartbeat`). When a worker is killed, PostgreSQL at once ends the
// worker's database session and releases the worker's lock. When the lock has been missing for 5 s, another process
// frees the jobs of the worker. This happens at most 7 s after the death of the worker. A live worker that has lost its
// connection has 5 s to take its lock again.
const LOOK_MS = 1_000
const GRACE_MS = 5_000
const RECONNECT_MS = 250

// The number 4217336002 is arbitrary, but every Courtside process must use the same number.
const KEY = (worker: string) => `hashtextextended(${worker}, 4217336002)`

const ALIVE = `select (classid::bigint << 32) | objid::bigint from pg_locks
  where locktype = 'advisory' and objsubid = 1 and granted
    and database = (select oid from pg_database where datname = current_database())`

type LockedJob = { id: string; worker: string; alive: boolean }

/**
 * Shows that the workers of this process are alive, and frees the jobs of dead workers. graphile-worker itself would
 * keep the jobs of a killed worker locked for four hours.
 *
 * Each worker holds an advisory lock. The key of the lock is a hash of the worker's id. If a worker has locked a job,
 * the column `locked_by` of the job contains the id of the worker. The lock belongs to a database session, so it ends
 * when the worker dies. The lock is shared, so two database sessions can hold it at the same time. Therefore, after a
 * lost connection, the worker can take the lock again at once, even if the server has not ended the old database
 * session yet.
 *
 * A worker counts as gone only if its lock stays missing for GRACE_MS. When the database restarts, all workers lose
 * their locks, and each worker needs time to take its lock again. So after a process has reconnected, it measures from
 * zero how long the lock of each other worker has been missing.
 */
export class WorkerHeartbeat {
  readonly #pool: pg.Pool
  readonly #log: FastifyBaseLogger
  readonly #workers = new Set<string>()
  /**
   * The ids of the jobs that tasks of this process have received. An id is removed when its job is no longer locked.
   */
  readonly #begun = new Set<string>()
  #held = false
  #closed = false
  #wake = new AbortController()
  #ran: Promise<void> = Promise.resolve()

  constructor(pool: pg.Pool, log: FastifyBaseLogger) {
    this.#pool = pool
    this.#log = log
  }

  start(): void {
    this.#ran = this.#run()
  }

  /** Whether this process holds the locks of all its workers. If a lock is missing, the workers must not take jobs. */
  get held(): boolean {
    return this.#held
  }

  get closed(): boolean {
    return this.#closed
  }

  join(worker: string): void {
    this.#workers.add(worker)
    this.#held = false
    this.#wake.abort()
  }

  leave(worker: string): void {
    this.#workers.delete(worker)
    this.#wake.abort()
  }

  begin(jobId: string): void {
    this.#begun.add(jobId)
  }

  /** Stops the heartbeat and releases the locks of all workers of this process. */
  async close(): Promise<void> {
    this.#held = false
    this.#closed = true
    this.#wake.abort()
    await this.#ran
  }

  async #run(): Promise<void> {
    let previous: pg.PoolClient | undefined
    while (!this.closed) {
      let client: pg.PoolClient | undefined
      try {
        client = await this.#pool.connect()
        client.once('end', () => this.#wake.abort())
        await this.#watch(client, () => {
          // The previous connection may hold the locks. It is closed only now, when the new connection holds the locks
          // too.
          previous?.release(true)
          previous = undefined
        })
      } catch (error) {
        // Logs one warning per outage instead of one per attempt to reconnect.
        const level = this.#held ? 'warn' : 'debug'
        this.#held = false
        this.#log[level]({ reason: (error as { code?: string }).code }, 'the worker lost its lock and takes it again')
        this.#wake = new AbortController()
        await this.#pause(RECONNECT_MS)
      }
      if (!client) continue
      previous?.release(true)
      previous = client
    }
    previous?.release(true)
  }

  async #watch(client: pg.PoolClient, locked: () => void): Promise<void> {
    // A machine that loses power does not close its connections. With these settings PostgreSQL detects such a dead
    // connection in about 5 s.
    await client.query(`select set_config('tcp_keepalives_idle', '2', false),
      set_config('tcp_keepalives_interval', '1', false), set_config('tcp_keepalives_count', '3', false)`)
    const locks = new Set<string>()
    const absences = new Map<string, number>()
    while (!this.closed) {
      this.#wake = new AbortController()
      await this.#settle(client, locks)
      locked()
      await this.#look(client, absences)
      await this.#pause(LOOK_MS)
    }
  }

  async #settle(client: pg.PoolClient, locks: Set<string>): Promise<void> {
    for (const worker of [...this.#workers].filter(id => !locks.has(id))) {
      await client.query(timed(`select pg_advisory_lock_shared(${KEY('$1')})`, [worker]))
      locks.add(worker)
    }
    for (const worker of [...locks].filter(id => !this.#workers.has(id))) {
      await client.query(timed(`select pg_advisory_unlock_shared(${KEY('$1')})`, [worker]))
      locks.delete(worker)
    }
    this.#held = !this.closed && [...this.#workers].every(id => locks.has(id))
  }

  async #look(client: pg.PoolClient, absences: Map<string, number>): Promise<void> {
    const begunBefore = [...this.#begun]
    const { rows } = await client.query<LockedJob>(
      timed(`with alive (key) as materialized (${ALIVE})
        select id::text, locked_by as worker, ${KEY('locked_by')} in (select key from alive) as alive
        from graphile_worker.jobs where locked_by is not null`),
    )
    const locked = new Set(rows.map(row => row.id))
    for (const id of begunBefore) if (!locked.has(id)) this.#begun.delete(id)

    const missing = new Set<string>()
    for (const { id, worker, alive } of rows) {
      // A worker of this process has locked the job. If no task has received the job, the connection must have broken
      // before the reply with the job arrived.
      if (this.#workers.has(worker)) {
        if (!this.#begun.has(id)) missing.add(`job ${id}`)
      } else if (!alive) missing.add(`worker ${worker}`)
    }
    for (const name of absences.keys()) if (!missing.has(name)) absences.delete(name)
    const now = performance.now()
    for (const name of missing) if (!absences.has(name)) absences.set(name, now)

    const gone = [...absences].filter(([, since]) => now - since >= GRACE_MS).map(([name]) => name.split(' '))
    if (gone.length > 0) await this.#free(client, gone as ['job' | 'worker', string][])
  }

  async #free(client: pg.PoolClient, gone: ['job' | 'worker', string][]): Promise<void> {
    const named = (kind: string) => gone.filter(([of]) => of === kind).map(([, name]) => name)
    // The first statement checks once more whether the locks are missing, because a worker may have taken its lock
    // after the check in `#look`.
    await client.query(
      timed(
        `select graphile_worker.force_unlock_workers(array(
          select worker from unnest($1::text[]) as gone (worker) where ${KEY('worker')} not in (${ALIVE})))`,
        [named('worker')],
      ),
    )
    await client.query(
      timed(
        `update graphile_worker._private_jobs set locked_at = null, locked_by = null
        where id = any($1::bigint[]) and locked_by = any($2::text[])`,
        [named('job'), [...this.#workers]],
      ),
    )
    // graphile-worker sends the same NOTIFY message for a new job. Without this message, workers would notice freed
    // jobs only at the next poll.
    await client.query(timed(`select pg_notify('jobs:insert', '{"count": 10}')`))
    this.#log.warn({ gone: gone.length }, 'freed the jobs of workers that are gone')
  }

  async #pause(ms: number): Promise<void> {
    await delay(ms, undefined, { signal: this.#wake.signal }).catch(() => {})
  }
}

/**
 * Returns a statement with a timeout of 4 s. The timeout is necessary because a connection may be dead although the
 * driver has reported no error.
 */
function timed(text: string, values: unknown[] = []): pg.QueryConfig & { query_timeout: number } {
  return { text, values, query_timeout: 4_000 }
}

import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import type pg from 'pg'

// A killed worker's session ends at once, and its jobs are freed when its lock has been seen missing for 5 s: 7 s after its
// death at most. A live one that lost its connection has those 5 s to take the lock again.
const LOOK_MS = 1_000
const GRACE_MS = 5_000
const RECONNECT_MS = 250

// Any constant will do, as long as every Courtside process takes the same one.
const KEY = (worker: string) => `hashtextextended(${worker}, 4217336002)`

const ALIVE = `select (classid::bigint << 32) | objid::bigint from pg_locks
  where locktype = 'advisory' and objsubid = 1 and granted
    and database = (select oid from pg_database where datname = current_database())`

type LockedJob = { id: string; worker: string; alive: boolean }

/**
 * Shows that workers are alive, and frees the jobs of those that are not. graphile-worker by itself keeps the jobs of a
 * killed worker locked for four hours.
 *
 * Every worker's id (what `locked_by` holds) is an advisory lock of one session, held for the worker's life and gone with
 * it. The lock is a shared one: after a lost connection it is taken again at once, even while the server still believes
 * in the old session. Whoever looks calls a worker gone only when its lock stays missing, and starts counting anew when its
 * own connection was lost: a database that restarts takes everybody's locks, and they all need the time to return.
 */
export class WorkerHeartbeat {
  readonly #pool: pg.Pool
  readonly #log: FastifyBaseLogger
  readonly #workers = new Set<string>()
  /** Jobs that tasks of ours were called with and that may still be locked. */
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

  /** Whether all our workers' locks are held; no job is to be taken otherwise. */
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

  /** Gives the locks back. */
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
          // Only now, when the new session holds the locks too.
          previous?.release(true)
          previous = undefined
        })
      } catch (error) {
        // Told once an outage, not at every attempt.
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
    // A machine that lost its power says no goodbye; the server finds out by itself in some 5 s.
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
      // A job that is ours but that we never got: the connection broke between its being locked and our hearing of it.
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
    // Looked at once more in the same statement, for a worker that is back just now.
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
    // What the library itself says of a new job; nobody hears of a freed one otherwise, before the next poll.
    await client.query(timed(`select pg_notify('jobs:insert', '{"count": 10}')`))
    this.#log.warn({ gone: gone.length }, 'freed the jobs of workers that are gone')
  }

  async #pause(ms: number): Promise<void> {
    await delay(ms, undefined, { signal: this.#wake.signal }).catch(() => {})
  }
}

/** A statement that is given up when no answer comes: the session may be dead without our having been told. */
function timed(text: string, values: unknown[] = []): pg.QueryConfig & { query_timeout: number } {
  return { text, values, query_timeout: 4_000 }
}

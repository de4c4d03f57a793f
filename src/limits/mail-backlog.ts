import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import type { Query } from '../db/sql.ts'
import { AppError } from '../errors.ts'

/**
 * The classes of mails in the outbox. Mails of a lower class go first. The first three are mails with codes, and the
 * last two are mails about unread notifications.
 */
export const MAIL_CLASSES = { knownClient: 1, account: 2, signUp: 3, urgentDigest: 4, digest: 5 } as const

/** Returns whether mails of a class contain codes. */
export function isCodeClass(mailClass: number): boolean {
  return mailClass <= MAIL_CLASSES.signUp
}

/**
 * Returns the class of a mail after a failed attempt in the class `failed`. Each failure moves the mail with a code one
 * class down. Otherwise, mails to full mailboxes that are tried again and again would go before all first mails of
 * later classes. Mails about unread notifications keep their class.
 */
export function findRetryClass(failed: number): number {
  return isCodeClass(failed) ? Math.min(failed + 1, MAIL_CLASSES.signUp) : failed
}

/** The classes that the service refuses while too many mails wait. Mails to known clients are never refused. */
export type RefusableClass = 'account' | 'signUp'

const POLL_MS = 1_000
/** A class is busy if one of its mails, or a mail of an earlier class, waits longer than this for its first attempt. */
const BUSY_SECONDS = 10
const MAX_WAIT_SECONDS = 60
const RETRY_AFTER_SECONDS = 30
/** If the process last read the backlog longer ago than this, it refuses no mail. */
const STALE_MS = 5_000

type Dependencies = {
  sql: Query
  readSql: Query
  now: () => Date
  log: FastifyBaseLogger
  countRefused: (mailClass: RefusableClass) => void
  /** Whether the process answers requests. Only such a process needs to read the backlog. */
  isServing: boolean
}

type Row = { class: number; is_busy: boolean; ahead: number; attempts: number }

export type MailBacklog = ReturnType<typeof createMailBacklog>

/**
 * Watches how long a new mail would wait in the outbox. While the wait of a class is longer than 60 s, the service
 * refuses new mails of the class. A code that arrives minutes later is of little use.
 */
export function createMailBacklog({ sql, readSql, now, log, countRefused, isServing }: Dependencies) {
  const stopping = new AbortController()
  let refused = new Set<number>()
  let polledAt = Number.NEGATIVE_INFINITY
  let attempts = 0

  async function storeAttempts(): Promise<void> {
    if (attempts === 0) return
    const count = attempts
    await addAttempts(sql, count)
    attempts -= count
  }

  async function poll(): Promise<void> {
    const rows = await readBacklog(readSql, now())
    refused = new Set(rows.filter(isOverLimit).map(row => row.class))
    polledAt = performance.now()
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      const failed = (error: unknown) => log.debug({ err: error }, 'could not read or write the backlog of mails')
      await storeAttempts()
        .then(isServing ? poll : undefined)
        .catch(failed)
      await delay(POLL_MS, undefined, { signal: stopping.signal, ref: false }).catch(() => {})
    }
  }

  return {
    poll,
    /** Counts the first attempt at a mail, in the process that makes it. */
    countAttempt(): void {
      attempts += 1
    },
    /** Stores the counted attempts and reads the backlog, every second until `stop` is called. */
    start: () => void run(),
    stop: async () => stopping.abort(),
    /** @throws AppError 503 with `Retry-After: 30` if a new mail of the class would wait longer than 60 s */
    check(mailClass: RefusableClass): void {
      const isFresh = performance.now() - polledAt < STALE_MS
      if (!isFresh || !refused.has(MAIL_CLASSES[mailClass])) return
      countRefused(mailClass)
      throw tooManyMails()
    },
  }
}

/**
 * Returns the backlog of each class that can be refused. `ahead` is the number of mails that go before a new mail of a
 * new network. These are all mails of earlier classes, and one mail of each network in the same class, because networks
 * take turns.
 */
async function readBacklog(sql: Query, now: Date): Promise<Row[]> {
  return sql<Row>`
    with waiting as materialized (
      select class, network, min(created_at) as since, count(*) as mails
      from outbox
      where channel = 'mail' and ready and attempts = 0 and class <= ${MAIL_CLASSES.signUp}
      group by class, network
    )
    select refusable.class,
      coalesce(min(since) < ${new Date(now.getTime() - BUSY_SECONDS * 1000)}, false) as is_busy,
      coalesce(sum(case when waiting.class < refusable.class then mails else 1 end), 0)::integer as ahead,
      (select coalesce(sum(count), 0) from outbox_attempt
        where second between extract(epoch from clock_timestamp())::bigint - ${BUSY_SECONDS}::integer
          and extract(epoch from clock_timestamp())::bigint + 1) as attempts
    from unnest(${[MAIL_CLASSES.account, MAIL_CLASSES.signUp]}::smallint[]) as refusable (class)
    left join waiting on waiting.class <= refusable.class
    group by refusable.class`
}

/** Adds a number of first attempts to the current second, and deletes the counts of earlier minutes. */
async function addAttempts(sql: Query, count: number): Promise<void> {
  await sql`
    with old as (delete from outbox_attempt where second < extract(epoch from clock_timestamp())::bigint - 60)
    insert into outbox_attempt (second, count) values (extract(epoch from clock_timestamp())::bigint, ${count})
    on conflict on constraint outbox_attempt_pkey do update set count = outbox_attempt.count + excluded.count`
}

function isOverLimit({ is_busy, ahead, attempts }: Row): boolean {
  return is_busy && ahead / (attempts / BUSY_SECONDS) > MAX_WAIT_SECONDS
}

function tooManyMails(): AppError {
  return new AppError(
    'unavailable',
    {
      fr: 'Trop de codes sont demandés en ce moment. Réessayez dans une minute.',
      en: 'Too many codes are being requested right now. Try again in a minute.',
    },
    { cause: 'too many mails wait in the outbox', headers: { 'retry-after': String(RETRY_AFTER_SECONDS) } },
  )
}

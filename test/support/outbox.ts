import type { TestContext } from 'node:test'
import { pino } from 'pino'
import type { Profile } from '../../src/accounts/users.ts'
import { createBuckets } from '../../src/auth/budgets.ts'
import type { MailTexts } from '../../src/auth/code-email.ts'
import { issueCode } from '../../src/auth/issue-code.ts'
import { sendCode } from '../../src/auth/send-code.ts'
import type { Sql } from '../../src/db/sql.ts'
import { deriveKeys, type Keys } from '../../src/keys.ts'
import type { Language } from '../../src/language.ts'
import { findRetryClass, MAIL_CLASSES } from '../../src/limits/mail-backlog.ts'
import { createSmtpMailer } from '../../src/mail/smtp.ts'
import type { Channel, ObservedAttempt } from '../../src/outbox/channel.ts'
import { createQueueMover } from '../../src/outbox/previous-queue.ts'
import { startWorkers } from '../../src/outbox/workers.ts'
import { JWT_SECRET } from './app.ts'
import { testDatabase } from './database.ts'
import { insertUser } from './factories.ts'
import { type Mode, smtpServer } from './smtp.ts'
import { waitUntil } from './wait-until.ts'

export const KEYS = deriveKeys([JWT_SECRET])
export const NOW = new Date('2026-11-28T10:00:00.000Z')
export const TEXTS = { appName: 'Courtside', timeZone: 'Europe/Paris', termsUrl: undefined }
export const FROM = 'Courtside <no-reply@example.com>'

export type Outbox = Awaited<ReturnType<typeof outbox>>

/** Returns the channel of mails as the service makes it. */
export function mailChannel(deliver: Channel['deliver'], places = 4, maxStartDelayMs = 400): Channel {
  const classes = Object.values(MAIL_CLASSES)
  return { name: 'mail', classes, findRetryClass, places, maxStartDelayMs, deliver, prepare: createQueueMover() }
}

/**
 * Creates a database and a mail server.
 * @returns the database, the mail server, and functions that queue codes and start workers
 */
export async function outbox(t: TestContext, mode?: Mode) {
  const database = await testDatabase()
  const smtp = await smtpServer(mode)
  const { sql } = database
  const logged: Record<string, unknown>[] = []
  const attempts: ObservedAttempt[] = []
  const log = pino({ level: 'debug', base: undefined }, { write: (line: string) => logged.push(JSON.parse(line)) })
  const workers: { stop(): Promise<void> }[] = []
  t.after(async () => {
    smtp.release()
    await Promise.all(workers.map(worker => worker.stop()))
    await smtp.close()
    await database.drop()
  })
  /** Starts a worker on the channel of mails. */
  function start(deliver: Channel['deliver'], options: WorkerOptions = {}) {
    const { now = NOW, url = database.url, places, maxStartDelayMs } = options
    const observe = (attempt: ObservedAttempt) => attempts.push(attempt)
    const worker = startWorkers(url, [mailChannel(deliver, places, maxStartDelayMs)], {
      log,
      now: typeof now === 'function' ? now : () => now,
      observe,
    })
    workers.push(worker)
    return worker
  }
  const rows = () => sql<OutboxRow>`select id, attempts, ready, lease, payload from outbox order by id`
  return {
    ...database,
    smtp,
    logged,
    /** The outcomes of all attempts, in order. */
    attempts,
    start,
    /** Starts a worker that mails codes. */
    work(options: WorkerOptions = {}) {
      const { now = NOW, keys = KEYS } = options
      const clock = typeof now === 'function' ? now : () => now
      const mailer = createSmtpMailer(smtp.url, { from: FROM })
      return start(
        sendCode({ sql: options.sql ?? sql, mailer, keys, now: clock, log, texts: options.texts ?? TEXTS }),
        options,
      )
    },
    /** Requests a code as `request-otp` does: for a sign-up, or for a sign-in if `profile` is null. */
    async ask(email: string, options: Options = {}) {
      const { profile = ZOE, language, now = NOW, on = sql, sessionId, network = Buffer.alloc(16) } = options
      const requester = { email, sessionId, network }
      const rules = { buckets: createBuckets(undefined), signUpLimits: undefined }
      const request = { requester, profile: profile ?? undefined, language, ...rules }
      const { outcome } = await issueCode(on, KEYS, request, now)
      if (outcome !== 'sent') throw new Error(`${email}: ${outcome}`)
    },
    async register(email: string, firstName: string, locale: Language = 'fr') {
      await insertUser(sql, { email, firstName, lastName: 'Martin', locale, now: NOW })
    },
    /** Adds rows to the outbox for no code, for workers whose function the test passes. */
    async add(rows: { class?: number; network?: string; payload?: unknown; due?: Date }[]) {
      for (const { class: mailClass = 2, network = 'a', payload = {}, due = NOW } of rows) {
        await sql`
          insert into outbox (channel, class, network, created_at, due, ready, payload)
          values ('mail', ${mailClass}, ${Buffer.from(network)}, ${NOW}, ${due}, ${due <= NOW}, ${JSON.stringify(payload)})`
      }
    },
    rows,
    /** Waits until a worker has deferred the only row after this number of attempts. */
    untilDeferred: (attempts: number) =>
      waitUntil(async () => {
        const [row] = await rows()
        return row !== undefined && row.attempts === attempts && !row.ready && row.lease === null
      }, 60_000),
  }
}

type WorkerOptions = {
  now?: Date | (() => Date)
  url?: string
  places?: number
  maxStartDelayMs?: number
  keys?: Keys
  sql?: Sql
  texts?: MailTexts
}
type Options = {
  profile?: Profile | null
  language?: Language | undefined
  now?: Date
  on?: Sql
  /** The session of a known client. */
  sessionId?: string
  network?: Buffer
}
type OutboxRow = { id: number; attempts: number; ready: boolean; lease: string | null; payload: Record<string, string> }

const ZOE: Profile = { firstName: 'Zoé', lastName: 'Martin', termsVersion: '1' }

import type { TestContext } from 'node:test'
import { pino } from 'pino'
import type { Profile } from '../../src/accounts/users.ts'
import { sendCode } from '../../src/auth/code-email.ts'
import { issueCode } from '../../src/auth/issue-code.ts'
import { startWorker, type Task } from '../../src/jobs/queue.ts'
import { deriveKeys } from '../../src/keys.ts'
import type { Language } from '../../src/language.ts'
import { createSmtpMailer } from '../../src/mail/smtp.ts'
import { JWT_SECRET } from './app.ts'
import { testDatabase } from './database.ts'
import { insertUser } from './factories.ts'
import { type Mode, smtpServer } from './smtp.ts'

export const KEYS = deriveKeys([JWT_SECRET])
export const NOW = new Date('2026-11-28T10:00:00.000Z')
export const FROM = 'Courtside <no-reply@example.com>'

export type Outbox = Awaited<ReturnType<typeof outbox>>

/**
 * Creates a database and a mail server.
 * @returns the database, the mail server, and functions that queue codes and start workers
 */
export async function outbox(t: TestContext, mode?: Mode) {
  const database = await testDatabase()
  const smtp = await smtpServer(mode)
  const { sql } = database
  const logged: Record<string, unknown>[] = []
  const log = pino({ level: 'debug', base: undefined }, { write: (line: string) => logged.push(JSON.parse(line)) })
  const workers: { stop(): Promise<void> }[] = []
  t.after(async () => {
    smtp.release()
    await Promise.all(workers.map(worker => worker.stop()))
    await smtp.close()
    await database.drop()
  })
  return {
    ...database,
    smtp,
    logged,
    /** Starts a worker that mails codes and runs the given tasks. */
    async work(more: Record<string, Task> = {}, now: Date = NOW) {
      const mailer = createSmtpMailer(smtp.url, { from: FROM })
      const tasks = { send_code: sendCode({ sql, mailer, keys: KEYS, now: () => now, log }), ...more }
      const worker = await startWorker(database.url, tasks, { log })
      workers.push(worker)
      return worker
    },
    /** Requests a code as `request-otp` does: for a sign-up, or for a sign-in if `profile` is null. */
    async ask(email: string, { profile = ZOE, language = 'fr', now = NOW }: Options = {}) {
      const request = { lane: { email }, profile: profile ?? undefined, language }
      const { outcome } = await issueCode(sql, KEYS, request, now)
      if (outcome !== 'sent') throw new Error(`${email}: ${outcome}`)
    },
    async register(email: string, firstName: string) {
      await insertUser(sql, { email, firstName, lastName: 'Martin', locale: 'fr', now: NOW })
    },
    jobs: () => sql<Job>`select id, attempts, last_error, payload from graphile_worker._private_jobs order by id`,
  }
}

type Options = { profile?: Profile | null; language?: Language; now?: Date }
type Job = { id: number; attempts: number; last_error: string | null; payload: Record<string, string> }

const ZOE: Profile = { firstName: 'Zoé', lastName: 'Martin', termsVersion: '1', termsAcceptedAt: NOW }

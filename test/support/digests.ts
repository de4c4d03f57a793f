import { type Mail, type Mailer, MailWithdrawn } from '../../src/mail/mailer.ts'
import * as outbox from '../../src/outbox/outbox.ts'
import { createExpander } from '../../src/reach/expand.ts'
import { sendDigest } from '../../src/reach/send-digest.ts'
import { sweep } from '../../src/reach/waiting-mail.ts'
import type { Harness } from './app.ts'

export const PUBLIC_URL = 'https://courtside.example.com'

/** The settings of an app with a mail server and the times of production. The mails of the tests go to `mailTo`. */
export const PRODUCTION = { SMTP_URL: 'smtp://127.0.0.1:1', SIGN_UP_LIMITS: 'off', DEV_MAILBOX: '', PUBLIC_URL }

export const MINUTE_MS = 60_000
export const HOUR_MS = 60 * MINUTE_MS
export const DAY_MS = 24 * HOUR_MS

/** Returns a mailer that keeps mails in `mails`. While `failure` is set, it throws the failure. */
export function keepingMailer() {
  const mails: Mail[] = []
  const kept = {
    mails,
    failure: undefined as Error | undefined,
    /** Runs while the mail server is slow: after `send` was called, and before the content leaves. */
    meanwhile: async () => {},
    mailer: {
      async send(mail: Mail, isCurrent?: () => Promise<boolean>) {
        if (kept.failure) throw kept.failure
        await kept.meanwhile()
        if (isCurrent && !(await isCurrent())) throw new MailWithdrawn()
        mails.push(mail)
      },
      async compose() {},
    } satisfies Mailer,
  }
  return kept
}

/** The steps of the deliveries of an app. The workers of the service run the same steps. */
export function deliveries(h: Harness) {
  const common = () => {
    const { hints, config } = h.ctx
    const { preferenceDefaults, emailAfterMs, emailAfterUrgentMs } = config
    const hashReceiver = (userId: number) => h.ctx.networks.hashText(`receiver:${userId}`)
    return {
      sql: h.database.sql,
      hints,
      now: h.clock.now,
      preferenceDefaults,
      emailAfterMs,
      emailAfterUrgentMs,
      hashReceiver,
    }
  }
  const claim = async (channel: string, classes: number[]) => {
    const lastNetworks = new Map(classes.map(each => [each, Buffer.alloc(0)]))
    await outbox.markReady(h.database.sql, h.clock.now(), 1000)
    return outbox.claim(h.database.sql, { channel, limit: 100, lastNetworks, lapsedBefore: undefined })
  }
  const run = async (rows: outbox.Delivery[], deliver: (row: outbox.Delivery) => Promise<Attempt>) => {
    const outcomes: string[] = []
    for (const row of rows) {
      const { outcome, retryAt, isReleased } = await deliver(row)
      outcomes.push(outcome)
      if (!isReleased) await outbox.finish(h.database.sql, [{ ...row, due: retryAt }], h.clock.now())
    }
    return outcomes
  }
  return {
    /** Makes the deliveries of all new notifications. @returns the outcomes */
    expand: async (sql = h.database.sql) =>
      run(await claim('announcement', [1]), createExpander({ ...common(), sql, sendsMails: true })),
    /** Looks for people to whom a mail is due. @returns their number */
    sweep: () => sweep(common()),
    claimMails: () => claim('mail', [4, 5]),
    /** Sends the mails about unread notifications in the outbox that are due. @returns the outcomes */
    async mail(mailer: Mailer): Promise<string[]> {
      return run(await claim('mail', [4, 5]), createSender(h, mailer))
    },
    readWaiting: (userId: number) => h.database.sql<Waiting>`
      select notification_id, urgent, look_at from waiting_mail where user_id = ${userId} order by notification_id`,
    readMails: (userId: number) => h.database.sql<QueuedMail>`
      select class, deadline, payload from outbox where channel = 'mail' and user_id = ${userId} order by id`,
    readPushes: (userId: number) => h.database.sql<Push>`
      select class, game_id, notification_id, subscription_id, deadline, ready, due from outbox
      where channel = 'push' and user_id = ${userId} order by id`,
  }
}

/** Returns the function that sends one mail about unread notifications. */
export function createSender(
  { ctx, database, clock }: Harness,
  mailer: Mailer,
  countWithdrawnBounces = (_: number) => {},
) {
  const { keys, log, config } = ctx
  return sendDigest({
    sql: database.sql,
    mailer,
    keys,
    log,
    now: clock.now,
    preferenceDefaults: config.preferenceDefaults,
    texts: { appName: config.appName, links: { ...config.links, public: PUBLIC_URL } },
    publicUrl: PUBLIC_URL,
    domain: 'example.com',
    countWithdrawnBounces,
  })
}

type Attempt = { outcome: string; retryAt?: Date; isReleased?: true }
type Waiting = { notification_id: number; urgent: boolean; look_at: Date }
type QueuedMail = {
  class: number
  deadline: Date
  payload: { notification_ids: number[]; urgent_ids: number[]; urgent: boolean }
}
type Push = {
  class: number
  game_id: number
  notification_id: number
  subscription_id: number
  deadline: Date
  ready: boolean
  due: Date
}

/** Inserts a push subscription of the user's newest session. @returns its id */
export async function makeSubscription({ database, clock }: Harness, userId: number): Promise<number> {
  const now = clock.now()
  const [row] = await database.sql<{ id: number }>`
    insert into push_subscription (user_id, session_id, endpoint, p256dh, auth, public_key, created_at, confirmed_at)
    select ${userId}, id, 'https://fcm.googleapis.com/' || gen_random_uuid(), 'p256dh', 'auth', 'key', ${now}, ${now}
    from session where user_id = ${userId} order by created_at desc limit 1
    returning id`
  return row!.id
}

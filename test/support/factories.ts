import { createTokens } from '../../src/auth/jwt.ts'
import { computeSessionEnd, signFirstToken } from '../../src/auth/session-tokens.ts'
import { inboxHint } from '../../src/db/hints.ts'
import type { Sql } from '../../src/db/sql.ts'
import { type NewNotification, store } from '../../src/notifications/store.ts'
import type { Harness } from './app.ts'

// This counter makes e-mail addresses and deduplication keys unique.
let made = 0

type NewUser = { email: string; firstName: string; lastName: string; locale: 'fr' | 'en'; now: Date }

/** Inserts an account without a sign-up. @returns the id of the account */
export async function insertUser(sql: Sql, { email, firstName, lastName, locale, now }: NewUser): Promise<number> {
  const [user] = await sql<{ id: number }>`
    insert into app_user (email, first_name, last_name, locale, terms_version, terms_accepted_at, created_at, updated_at)
    values (${email}, ${firstName}, ${lastName}, ${locale}, '1', ${now}, ${now}, ${now})
    returning id`
  return user!.id
}

/** Inserts an account with a session. @returns the account and the first token of the session */
export async function makeUser(
  { ctx, database: { sql } }: Harness,
  { firstName = 'Marie', locale = 'fr' }: { firstName?: string; locale?: 'fr' | 'en' } = {},
): Promise<{ id: number; email: string; token: string }> {
  made += 1
  const email = `made${made}@example.com`
  const now = ctx.now()
  const id = await insertUser(sql, { email, firstName, lastName: 'Durand', locale, now })
  const [session] = await sql<{ id: string }>`
    insert into session (user_id, created_at, expires_at, issued_at)
    values (${id}, ${now}, ${computeSessionEnd(now, ctx.config.sessionDays)}, ${now})
    returning id`
  return { id, email, token: signFirstToken(createTokens(ctx.keys), id, session!.id, now) }
}

type Notifications = [harness: Harness, userId: number, count: number, more?: Partial<NewNotification>]

/** Stores notifications for a user, and sends a hint about the user. @returns the ids, oldest first */
export async function makeNotifications(...args: Notifications): Promise<number[]> {
  const [{ ctx }, userId] = args
  return ctx.hints.sendAfter(async changed => {
    const ids = await makeNotificationsSilently(...args)
    for (const id of ids) changed.add(inboxHint(userId, id))
    return ids
  })
}

/** Stores notifications like `makeNotifications`, but sends no hint. */
export async function makeNotificationsSilently(
  ...[{ ctx, database }, userId, count, more = {}]: Notifications
): Promise<number[]> {
  made += 1
  const stored = await store(
    database.sql,
    Array.from({ length: count }, (_, index) => ({
      userId,
      dedupKey: `made ${made} ${index}`,
      type: 'game_full',
      title: 'Partie complète',
      message: `Numéro ${index}`,
      data: { game_id: index },
      locale: 'fr' as const,
      actorId: null,
      actorName: null,
      ...more,
    })),
    ctx.now(),
  )
  return stored.map(({ id }) => id)
}

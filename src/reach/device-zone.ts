import type { Sql } from '../db/sql.ts'
import { lockAccount, type PreferenceDefaults, readAll, wakeUser } from './preferences.ts'

/**
 * Changes the push subscriptions of a user in one transaction. The subscription that was confirmed last may decide the
 * time zone of the person. If the change moves the person to another zone, this function counts it as a change of their
 * preferences and wakes their deliveries.
 * @returns the result of `change`, or undefined if there is no such user
 */
export async function watchTimeZone<T>(
  sql: Sql,
  userId: number,
  { defaults, now }: { defaults: PreferenceDefaults; now: Date },
  change: (tx: Sql) => Promise<T>,
): Promise<T | undefined> {
  return sql.begin(async tx => {
    if (!(await lockAccount(tx, userId))) return undefined
    const findZone = async () => (await readAll(tx, [userId], defaults)).get(userId)!.timeZone
    const zone = await findZone()
    const result = await change(tx)
    if ((await findZone()) === zone) return result
    await tx`
      insert into notification_preference as stored (user_id, updated_at) values (${userId}, ${now})
      on conflict (user_id) do update set version = stored.version + 1, updated_at = excluded.updated_at`
    await wakeUser(tx, userId, now)
    return result
  })
}

import * as codes from '../auth/codes.ts'
import * as sessions from '../auth/sessions.ts'
import type { Database } from '../db/sql.ts'
import * as games from '../games/games.ts'
import * as notifications from '../notifications/notifications.ts'
import * as users from './users.ts'

/**
 * Takes away at once all that is held on a user, in one transaction: sessions and own notifications go with the account.
 * @returns whether there was such a user
 */
export async function eraseUser(sql: Database, userId: number): Promise<boolean> {
  return sql.begin(async tx => {
    // Games first, then people: the order in which the intake takes their locks; a sign-in takes its code's before its user's.
    await games.removePlayer(tx, userId)
    await codes.removeUser(tx, userId)
    if (!(await users.lock(tx, userId))) return false
    await notifications.anonymizeActor(tx, userId)
    await sessions.removeAll(tx, userId)
    const email = await users.remove(tx, userId)
    // Whatever was asked for in between.
    await codes.removeAll(tx, email!)
    return true
  })
}

/** All that is held on a user, in plain JSON; only what would let a reader act for them (hashes, secrets) is left out. */
export async function exportUser(sql: Database, userId: number): Promise<Record<string, unknown>> {
  return {
    account: await users.exportUserData(sql, userId),
    sessions: await sessions.exportUserData(sql, userId),
    codes: await codes.exportUserData(sql, userId),
    notifications: await notifications.exportUserData(sql, userId),
    games: await games.exportUserData(sql, userId),
  }
}

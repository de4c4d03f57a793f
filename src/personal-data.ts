import * as accounts from './accounts/personal-data.ts'
import * as codes from './auth/codes.ts'
import * as sessions from './auth/sessions.ts'
import type { Database } from './db/sql.ts'
import * as games from './games/games.ts'
import * as notifications from './notifications/notifications.ts'

/**
 * Each feature's part in the deletion and the export of an account. Every feature that stores personal data has one.
 */
const PARTS: accounts.PersonalData = {
  erase: {
    // The order of the locks: the intake locks games before users, and a sign-in locks its code before its user.
    beforeLock: [games.removePlayer, codes.removeUser],
    whileLocked: [notifications.anonymizeActor, sessions.removeAll],
    // A request may have stored a code after the first removal and before the lock.
    afterRemoval: [codes.removeAll],
  },
  export: {
    sessions: sessions.exportUserData,
    codes: codes.exportUserData,
    notifications: notifications.exportUserData,
    games: games.exportUserData,
  },
}

/**
 * Deletes all data of a user in one transaction.
 * @returns false if there is no such user
 */
export async function eraseUser(sql: Database, userId: number): Promise<boolean> {
  return accounts.eraseUser(sql, userId, PARTS)
}

/** Returns all data of a user as plain JSON, except hashes and secrets. */
export async function exportUser(sql: Database, userId: number): Promise<Record<string, unknown>> {
  return accounts.exportUser(sql, userId, PARTS)
}

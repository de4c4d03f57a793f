import * as accounts from './accounts/personal-data.ts'
import * as codes from './auth/codes.ts'
import * as sessions from './auth/sessions.ts'
import type { Database } from './db/sql.ts'
import * as games from './games/games.ts'
import * as notifications from './notifications/notifications.ts'
import * as reach from './reach/personal-data.ts'

/**
 * The functions with which each feature deletes or exports a user's data. Every feature that stores personal data must
 * be listed here.
 */
const PARTS: accounts.PersonalData = {
  erase: {
    // The intake locks games before users, and a sign-in locks the code before the user. The functions in `beforeLock`
    // lock the games and the codes before `eraseUser` locks the user, so no deadlock occurs.
    beforeLock: [games.removePlayer, codes.removeUser],
    whileLocked: [notifications.eraseUser, sessions.removeAll, reach.eraseUser],
    // Between `codes.removeUser` and the lock of the account, a concurrent request may have stored a new code.
    // `codes.removeAll` deletes this code.
    afterRemoval: [codes.removeAll],
  },
  export: {
    sessions: sessions.exportUserData,
    codes: codes.exportUserData,
    notifications: notifications.exportUserData,
    games: games.exportUserData,
    reach: reach.exportUserData,
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

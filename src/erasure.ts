import * as codes from './auth/codes.ts'
import type { Database } from './db/sql.ts'
import * as users from './users/users.ts'

/**
 * Takes away at once all that is held on a user, in one transaction: sessions and own notifications go with the account.
 * @returns whether there was such a user
 */
export async function eraseUser(sql: Database, userId: number): Promise<boolean> {
  return sql.begin(async tx => {
    const email = await users.remove(tx, userId)
    if (email === undefined) return false
    await codes.forget(tx, email)
    return true
  })
}

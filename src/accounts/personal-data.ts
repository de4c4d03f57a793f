import type { Database, Sql } from '../db/sql.ts'
import * as users from './users.ts'

type EraseByUser = (tx: Sql, userId: number) => Promise<unknown>
type EraseByEmail = (tx: Sql, email: string) => Promise<unknown>
type Export = (sql: Sql, userId: number) => Promise<unknown>

/**
 * The functions with which each feature deletes or exports a user's data. `src/personal-data.ts` lists these functions.
 */
export type PersonalData = {
  erase: {
    /** `eraseUser` calls these functions first, in this order. It locks the account afterwards. */
    beforeLock: readonly EraseByUser[]
    /** `eraseUser` calls these functions in this order after it has locked the account. */
    whileLocked: readonly EraseByUser[]
    /**
     * `eraseUser` calls these functions after it has deleted the account. They delete rows by the e-mail address of the
     * account.
     */
    afterRemoval: readonly EraseByEmail[]
  }
  /**
   * Each function returns one part of the exported JSON object. The key of a function is the name of the JSON member
   * that contains this part. The JSON members have the same order as the keys.
   */
  export: Readonly<Record<string, Export>>
}

/**
 * Deletes all data of a user in one transaction.
 * @returns false if there is no such user
 */
export async function eraseUser(
  sql: Database,
  userId: number,
  { erase }: Pick<PersonalData, 'erase'>,
): Promise<boolean> {
  return sql.begin(async tx => {
    for (const eraseStep of erase.beforeLock) await eraseStep(tx, userId)
    if (!(await users.lock(tx, userId))) return false
    for (const eraseStep of erase.whileLocked) await eraseStep(tx, userId)
    const email = await users.remove(tx, userId)
    for (const eraseStep of erase.afterRemoval) await eraseStep(tx, email!)
    return true
  })
}

/**
 * Returns all data of a user as plain JSON. The result contains no hashes and no secrets, because a person who steals
 * the export could use such values to act as the user.
 */
export async function exportUser(
  sql: Database,
  userId: number,
  parts: Pick<PersonalData, 'export'>,
): Promise<Record<string, unknown>> {
  const exported: Record<string, unknown> = { account: await users.exportUserData(sql, userId) }
  for (const [key, exportPart] of Object.entries(parts.export)) exported[key] = await exportPart(sql, userId)
  return exported
}

import type { Database, Sql } from '../db/sql.ts'
import * as users from './users.ts'

type EraseByUser = (tx: Sql, userId: number) => Promise<unknown>
type EraseByEmail = (tx: Sql, email: string) => Promise<unknown>
type Export = (sql: Sql, userId: number) => Promise<unknown>

/** The functions with which each feature deletes or exports a user's data. `src/personal-data.ts` lists them. */
export type PersonalData = {
  erase: {
    /** These functions run first, in this order. They take their locks before the account is locked. */
    beforeLock: readonly EraseByUser[]
    /** These functions run in this order while the account is locked. */
    whileLocked: readonly EraseByUser[]
    /** These functions run after the deletion of the account. They delete rows by the e-mail address of the account. */
    afterRemoval: readonly EraseByEmail[]
  }
  /**
   * The functions that return the parts of the exported JSON object, by member name and in the order of the members.
   */
  export: Readonly<Record<string, Export>>
}

/**
 * Deletes all data of a user in one transaction. The foreign keys delete the user's notifications together with the
 * account.
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
 * Returns all data of a user as plain JSON. The result contains no hashes and no secrets, because a thief of the export
 * could use them to act as the user.
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

import type { Database, Sql } from '../db/sql.ts'
import * as users from './users.ts'

type EraseByUser = (tx: Sql, userId: number) => Promise<unknown>
type EraseByEmail = (tx: Sql, email: string) => Promise<unknown>
type Export = (sql: Sql, userId: number) => Promise<unknown>

/** The functions with which each feature deletes or exports a user's data. `src/personal-data.ts` lists them. */
export type PersonalData = {
  erase: {
    /** These run first, in this order. They take their locks before the lock of the account. */
    beforeLock: readonly EraseByUser[]
    /** These run while the account is locked, in this order. */
    whileLocked: readonly EraseByUser[]
    /** These run after the deletion of the account. They delete rows by its e-mail address. */
    afterRemoval: readonly EraseByEmail[]
  }
  /** The members of the exported JSON object, in their order. Each has the function that returns its value. */
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

/** Returns all data of a user as plain JSON, without hashes and secrets. With those, a thief could act as the user. */
export async function exportUser(
  sql: Database,
  userId: number,
  parts: Pick<PersonalData, 'export'>,
): Promise<Record<string, unknown>> {
  const exported: Record<string, unknown> = { account: await users.exportUserData(sql, userId) }
  for (const [key, exportPart] of Object.entries(parts.export)) exported[key] = await exportPart(sql, userId)
  return exported
}

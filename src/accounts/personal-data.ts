import type { Database, Sql } from '../db/sql.ts'
import * as users from './users.ts'

type EraseByUser = (tx: Sql, userId: number) => Promise<unknown>
type EraseByEmail = (tx: Sql, email: string) => Promise<unknown>
type Export = (sql: Sql, userId: number) => Promise<unknown>

/** The parts of the features in the deletion and the export of an account. The process passes them in. */
export type PersonalData = {
  erase: {
    /** Steps that take their locks before the lock of the account, in this order. */
    beforeLock: readonly EraseByUser[]
    /** Steps that need the locked account, in this order. */
    whileLocked: readonly EraseByUser[]
    /** Steps that look for the address once the account is deleted. */
    afterRemoval: readonly EraseByEmail[]
  }
  /** The keys of the export with their readers, in the order of the export. */
  export: Readonly<Record<string, Export>>
}

/**
 * Deletes all data of a user in one transaction. The foreign keys delete the user's notifications with the account.
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

/** Returns all data of a user as plain JSON, except hashes and secrets, which would let a reader act as the user. */
export async function exportUser(
  sql: Database,
  userId: number,
  parts: Pick<PersonalData, 'export'>,
): Promise<Record<string, unknown>> {
  const exported: Record<string, unknown> = { account: await users.exportUserData(sql, userId) }
  for (const [key, exportPart] of Object.entries(parts.export)) exported[key] = await exportPart(sql, userId)
  return exported
}

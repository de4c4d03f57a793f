import { randomBytes } from 'node:crypto'
import { query, type TestDatabase } from './database.ts'

/**
 * Creates a role that may read and write all tables, but may not send NOTIFY in the given database.
 * @returns the URL of the database for this role. A client must be closed before `drop`
 */
export async function createMuteRole({ url }: Pick<TestDatabase, 'url'>) {
  const role = `mute_${randomBytes(6).toString('hex')}`
  const password = randomBytes(12).toString('hex')
  const setNotify = (verb: 'grant' | 'revoke', direction: 'to' | 'from') =>
    query(url, `${verb} execute on function pg_catalog.pg_notify(text, text) ${direction} public`)
  await setNotify('revoke', 'from')
  await query(url, `create role ${role} login password '${password}' in role pg_read_all_data, pg_write_all_data`)
  const muteUrl = Object.assign(new URL(url), { username: role, password })
  return {
    url: muteUrl.href,
    allowNotify: () => setNotify('grant', 'to'),
    async drop(): Promise<void> {
      await setNotify('grant', 'to')
      await query(url, `drop role ${role}`)
    },
  }
}

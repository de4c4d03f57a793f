import { dirname } from 'node:path'
import { Client } from '../db/client.ts'
import { FolderInUseError } from './owner-lock.ts'
import { readClusterFile } from './read-cluster-file.ts'

/**
 * Checks that no service of an earlier version runs on a cluster. Such a service does not have the lock on the data
 * folder. Instead, it has a connection to its server that is named `courtside-owner-PID`. The server listens on a port,
 * so this function cannot find it from a container with a separate network.
 * @throws FolderInUseError if such a service runs
 */
export async function requireNoEarlierService(cluster: string): Promise<void> {
  // The first start of this version deletes the file with the password.
  const password = await readClusterFile(cluster, 'courtside-password').catch(() => '')
  const lockFile = password && (await readClusterFile(cluster, 'postmaster.pid').catch(() => ''))
  const port = lockFile.split('\n')[3]?.trim()
  if (!port) return
  const url = `postgres://courtside:${password}@127.0.0.1:${port}/courtside?sslmode=disable&require_auth=scram-sha-256`
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 2_000, query_timeout: 2_000 })
  try {
    await client.connect()
    const { rows } = await client.query<{ name: string }>(
      `select application_name as name from pg_stat_activity where application_name like 'courtside-owner-%'`,
    )
    if (rows[0]) throw new FolderInUseError(dirname(cluster), `process ${rows[0].name.split('-').at(-1)}`)
  } catch (error) {
    // Every other error means that the server does not run or that the password is not its password.
    if (error instanceof FolderInUseError) throw error
  } finally {
    await client.end().catch(() => {})
  }
}

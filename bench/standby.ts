import { cp, mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import type { Programs } from '../src/embedded/cluster.ts'
import { launch } from '../src/embedded/launch.ts'
import { freePort } from './programs.ts'

/** A running server: its programs, its data folder and its URL. */
type Primary = { programs: Programs; cluster: string; url: string }

/** Starts a synchronous standby of a server. Each commit then waits until the standby has flushed it. */
export async function startStandby({ programs, cluster, url }: Primary, settings: Record<string, string>) {
  // The user who runs PostgreSQL can reach this folder.
  const folder = join(dirname(cluster), 'standby')
  await mkdir(folder, { mode: 0o711 })
  const copy = join(folder, 'postgres')
  const { hostname, port, username, password } = new URL(url)
  const address = {
    listen_addresses: '127.0.0.1',
    port: String(await freePort()),
    primary_conninfo: `host=${hostname} port=${port} user=${username} password=${password}`,
  }
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await copyCluster(client, cluster, copy)
    const standby = await launch(programs, copy, { settings: { ...settings, ...address } })
    await waitUntilStreaming(client)
    await client.query(`alter system set synchronous_standby_names = '*'`)
    await client.query('select pg_reload_conf()')
    return standby
  } finally {
    await client.end()
  }
}

/** Copies the data folder of a running server. The embedded package has no `pg_basebackup`. */
async function copyCluster(client: pg.Client, cluster: string, copy: string): Promise<void> {
  await client.query(`select pg_backup_start('bench', true)`)
  await cp(cluster, copy, { recursive: true, filter: path => !path.endsWith('postmaster.pid') })
  const { rows } = await client.query('select labelfile from pg_backup_stop(false)')
  await writeFile(join(copy, 'backup_label'), rows[0].labelfile)
  await writeFile(join(copy, 'standby.signal'), '')
}

async function waitUntilStreaming(client: pg.Client): Promise<void> {
  for (let attempt = 1; attempt <= 300; attempt += 1) {
    const { rows } = await client.query(`select from pg_stat_replication where state = 'streaming'`)
    if (rows.length > 0) return
    await delay(100)
  }
  throw new Error('the standby did not start to stream from the primary')
}

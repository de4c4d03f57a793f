import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { pino } from 'pino'
import { startThrowAway } from '../../src/embedded/throw-away.ts'
import { newSecret } from '../../src/secrets.ts'

/** The role of the service. As in production, it is no superuser. */
const ROLE = 'courtside_service'

const DOCUMENT = readFileSync(new URL('../../docs/scaling.md', import.meta.url), 'utf8')

/** The documented statements: first the statements for every server, then the statements for the coordinator. */
const [ON_EVERY_SERVER, ON_COORDINATOR] = [...DOCUMENT.split('\n## Citus\n')[1]!.matchAll(/```sql\n(.*?)```/gs)].map(
  ([, sql]) => sql!,
)

const SETTINGS = { fsync: 'off', max_connections: '200', shared_preload_libraries: 'citus' }

/** A coordinator of Citus with two workers. */
export type CitusCluster = {
  /** The URL of the database `courtside` on the coordinator, whose user is an ordinary role that owns the database. */
  url: string
  stopWorker(index: number): Promise<void>
  stop(): Promise<void>
}

/** Starts three servers from the programs in the folder CITUS_PG_BIN, and joins them as docs/scaling.md describes. */
export async function startCitus(): Promise<CitusCluster> {
  const folder = await mkdtemp(join(tmpdir(), 'courtside-citus-'))
  const log = pino({ level: 'error' })
  const options = { bin: process.env.CITUS_PG_BIN, settings: SETTINGS }
  const [coordinator, ...workers] = await Promise.all(
    ['coordinator', 'worker1', 'worker2'].map(name => startThrowAway(join(folder, name), log, options)),
  )
  const servers = [coordinator!, ...workers]
  const rolePassword = newSecret()
  // The servers log in to each other, so a role has the same password on all servers.
  const { username: superuser, password } = new URL(coordinator!.url)
  for (const { url } of servers) {
    const passwords = `(0, '${superuser}', 'password=${password}'), (0, '${ROLE}', 'password=${rolePassword}')`
    await query(
      url,
      `create role ${ROLE} login password '${rolePassword}'; alter database courtside owner to ${ROLE};
        ${replaceExactly(ON_EVERY_SERVER!, [[/\(0, .*\)/s, passwords]])}
        alter role ${superuser} password '${password}'`,
    )
  }
  const hosts = servers.map(({ url }) => new URL(url))
  const names = ['db', 'worker1', 'worker2'].map(
    (name, index) => [`'${name}.internal', 5432`, `'${hosts[index]!.hostname}', ${hosts[index]!.port}`] as const,
  )
  await query(coordinator!.url, replaceExactly(ON_COORDINATOR!, names))
  return {
    url: Object.assign(new URL(coordinator!.url), { username: ROLE, password: rolePassword }).href,
    stopWorker: index => workers[index]!.stop(),
    async stop() {
      for (const { stop } of servers) await stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** Replaces each pattern once. @throws if the text does not contain a pattern */
function replaceExactly(text: string, replacements: readonly (readonly [string | RegExp, string])[]): string {
  return replacements.reduce((changed, [pattern, value]) => {
    const replaced = changed.replace(pattern, () => value)
    assert.notEqual(replaced, changed, `docs/scaling.md does not contain ${pattern}`)
    return replaced
  }, text)
}

async function query(url: string, statement: string) {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}

import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { newSecret } from '../secrets.ts'
import { replaceFile, SUPERUSER } from './cluster.ts'
import { removeFile } from './foreign-folder.ts'
import { readClusterFile } from './read-cluster-file.ts'
import { findAddress, SERVICE_ROLE } from './socket.ts'

// The password file is in the cluster's folder, so the password stays with the data when the folder is moved.
const PASSWORD_FILE = 'service-password'
// Earlier versions stored the password of the superuser in this file.
const SUPERUSER_PASSWORD_FILE = 'courtside-password'

const HBA_HEADER = '# Courtside writes this file at each start.\n'
const SERVICE_LINE = `local courtside ${SERVICE_ROLE} scram-sha-256\n`
/** Lets the superuser log in without a password. Only the user of the service can enter the folder of the socket. */
const SUPERUSER_LINE = `local all ${SUPERUSER} trust\n`

/**
 * Returns the password of the service's role. Returns undefined if the role must be created or needs a new password,
 * because the file is missing, empty or incomplete.
 * @throws if the file exists but cannot be read
 */
export async function readPassword(cluster: string): Promise<string | undefined> {
  const path = join(cluster, PASSWORD_FILE)
  try {
    const text = await readClusterFile(cluster, PASSWORD_FILE)
    return /^[\w-]{43}$/.test(text) ? text : undefined
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return undefined
    if (code === 'EISDIR') throw new Error(`${path} is a folder. Delete it. The next startup sets a new password.`)
    throw new Error(`${path} cannot be read: ${message}`, { cause: error })
  }
}

/**
 * Writes the rules that decide who may connect to the server. They take effect when the server starts or reloads its
 * configuration.
 */
export async function writeAccessRules(cluster: string, options: { superuser: boolean }): Promise<void> {
  await replaceFile(cluster, 'pg_hba.conf', HBA_HEADER + SERVICE_LINE + (options.superuser ? SUPERUSER_LINE : ''))
}

/**
 * Creates the role of the service with a new password, and the database `courtside`, which belongs to this role. In a
 * cluster of an earlier version, gives the role everything that belongs to the superuser. Afterwards the superuser can
 * no longer log in. An interruption leaves no password file, so the next startup calls this function again.
 * @returns the password
 */
export async function prepareDatabase(cluster: string): Promise<string> {
  const password = newSecret()
  await asSuperuser(cluster, 'postgres', async client => {
    const { rows } = await client.query('select from pg_roles where rolname = $1', [SERVICE_ROLE])
    if (rows.length === 0) await client.query(`create role ${SERVICE_ROLE}`)
    // The password contains only letters, digits, `-` and `_`.
    await client.query(`alter role ${SERVICE_ROLE} login nosuperuser nocreatedb nocreaterole noreplication nobypassrls
      password '${password}'`)
    await client.query(`alter role ${SUPERUSER} password null`)
    const databases = await client.query(`select from pg_database where datname = 'courtside'`)
    if (databases.rows.length === 0) await client.query(`create database courtside owner ${SERVICE_ROLE}`)
  })
  await asSuperuser(cluster, 'courtside', client => client.query(TRANSFER_OWNERSHIP))
  await replaceFile(cluster, PASSWORD_FILE, password)
  await removeFile(join(cluster, SUPERUSER_PASSWORD_FILE))
  await writeAccessRules(cluster, { superuser: false })
  await asSuperuser(cluster, 'postgres', client => client.query('select pg_reload_conf()'))
  await waitUntilRefused(cluster)
  return password
}

/**
 * Waits until the superuser can no longer log in. The server reloads its configuration a moment after `pg_reload_conf`
 * returns.
 */
async function waitUntilRefused(cluster: string): Promise<void> {
  for (let attempt = 0; attempt < 500; attempt += 1) {
    try {
      await asSuperuser(cluster, 'postgres', async () => {})
    } catch {
      return
    }
    await delay(10)
  }
  throw new Error('PostgreSQL does not apply its new access rules.')
}

/** Runs `work` on a connection of the superuser. */
export async function asSuperuser(
  cluster: string,
  database: string,
  work: (client: pg.Client) => Promise<unknown>,
  port = 5432,
): Promise<void> {
  const client = new pg.Client({ user: SUPERUSER, host: findAddress(dirname(cluster)), port, database, ssl: false })
  client.on('error', () => {})
  try {
    await client.connect()
    await work(client)
  } finally {
    await client.end()
  }
}

/**
 * Gives everything in the current database to the service's role, except the objects of PostgreSQL and of extensions.
 * `reassign owned` refuses to do this for the first superuser of a cluster. The owner of a table also owns the table's
 * indexes, its row type and the sequences of its columns.
 */
const TRANSFER_OWNERSHIP = `
  do $$
  declare
    change text;
  begin
    execute format('alter database %I owner to ${SERVICE_ROLE}', current_database());
    for change in
      with own as (
        select oid as schema_id, nspname from pg_namespace
        where nspname !~ '^pg_' and nspname <> 'information_schema'
      ), dependent as (
        select classid, objid from pg_depend
        where deptype = 'e' or (deptype in ('a', 'i') and classid = 'pg_class'::regclass and refclassid = 'pg_class'::regclass)
      )
      select format('alter schema %I owner to ${SERVICE_ROLE}', nspname) from own where nspname <> 'public'
      union all
      select format('alter %s %s owner to ${SERVICE_ROLE}',
        case relkind when 'S' then 'sequence' when 'v' then 'view' when 'm' then 'materialized view' when 'c' then 'type'
          else 'table' end, pg_class.oid::regclass)
      from pg_class join own on relnamespace = schema_id
      where relkind in ('r', 'p', 'S', 'v', 'm', 'c', 'f') and ('pg_class'::regclass, pg_class.oid) not in (table dependent)
      union all
      select format('alter routine %s owner to ${SERVICE_ROLE}', pg_proc.oid::regprocedure)
      from pg_proc join own on pronamespace = schema_id
      where ('pg_proc'::regclass, pg_proc.oid) not in (table dependent)
      union all
      select format('alter type %s owner to ${SERVICE_ROLE}', pg_type.oid::regtype)
      from pg_type join own on typnamespace = schema_id
      where typtype in ('d', 'e', 'r') and ('pg_type'::regclass, pg_type.oid) not in (table dependent)
    loop
      execute change;
    end loop;
  end
  $$`

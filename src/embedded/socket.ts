import { closeSync, fstatSync, openSync, statSync } from 'node:fs'
import { lstat, mkdir } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { removeFolder } from './foreign-folder.ts'
import { giveFolder } from './give-folder.ts'
import type { Account } from './programs.ts'

/** The role of the service in the database. It owns the database `courtside` and is no superuser. */
export const SERVICE_ROLE = 'courtside_service'

// PostgreSQL names its socket after a port number.
const PORT = 5432
const SOCKET_NAME = `.s.PGSQL.${PORT}`
// The maximum length of `sun_path`, without the terminating zero byte.
const MAX_PATH_BYTES = process.platform === 'linux' ? 107 : 103

/**
 * The folder of PostgreSQL's Unix socket, relative to the cluster. PostgreSQL binds the socket while it works in the
 * cluster's folder. So the path of the data folder can have any length.
 */
export const SOCKET_FOLDER_FROM_CLUSTER = '../socket'

/** Creates the folder of the socket with mode 0700. Removes an earlier folder with everything in it. */
export async function prepareSocketFolder(folder: string, account: Account): Promise<void> {
  const path = join(folder, 'socket')
  const stats = await lstat(path).catch(() => undefined)
  if (stats && !stats.isDirectory()) throw new Error(`${path} must be a folder. Delete it.`)
  if (stats) await removeFolder(path)
  await mkdir(path, { mode: 0o700 }).catch(error => {
    throw error.code === 'EEXIST' ? new Error(`${path} cannot be removed. Delete it.`, { cause: error }) : error
  })
  await giveFolder(account, path)
}

/** Returns whether a server accepts connections on the socket. Works from every container that has the data folder. */
export async function isServerListening(folder: string): Promise<boolean> {
  const path = join(findAddress(folder), SOCKET_NAME)
  const socket = connect(path)
  try {
    return await new Promise<boolean>((resolve, reject) => {
      socket.once('connect', () => resolve(true))
      socket.once('error', (error: NodeJS.ErrnoException) => {
        if (['ECONNREFUSED', 'ENOENT', 'ENOTDIR'].includes(error.code ?? '')) resolve(false)
        // The queue of the socket is full, so a process has it open.
        else if (error.code === 'EAGAIN') resolve(true)
        else
          reject(new Error(`${join(folder, 'socket', SOCKET_NAME)} cannot be opened: ${error.code}`, { cause: error }))
      })
    })
  } finally {
    socket.destroy()
  }
}

/**
 * Checks that no other user can replace the socket, for a process that did not create the folder itself.
 * @throws if the folder of the socket belongs to another user, or if other users may enter it
 */
export async function requirePrivateSocket(folder: string): Promise<void> {
  const path = join(folder, 'socket')
  const stats = await lstat(path)
  const user = process.geteuid?.()
  const isOurs = user === 0 || user === undefined || stats.uid === user
  if (stats.isDirectory() && isOurs && (stats.mode & 0o077) === 0) return
  throw new Error(`${path} must be a folder of mode 700 that belongs to the user id ${user}. Restart the service.`)
}

/**
 * Returns the URL of the embedded database. The connection uses the socket in a folder that only the service's user can
 * enter. `require_auth` makes sure that the client never sends the password to another program that took the socket's
 * place. The URL names the port and `sslmode`, because pg would otherwise read them from PGPORT and PGSSLMODE, which an
 * operator may have set for `psql`.
 */
export function buildUrl(folder: string, password: string): string {
  const host = encodeURIComponent(findAddress(folder))
  return `postgres://${SERVICE_ROLE}:${password}@/courtside?host=${host}&port=${PORT}&sslmode=disable&require_auth=scram-sha-256`
}

const openFolders = new Map<string, number>()

/**
 * Returns a path of the socket's folder that is short enough for a socket. If the path of the data folder is too long,
 * opens this folder and returns a path below /proc/self/fd, through which Linux gives access to open folders.
 * @throws if the path is too long and the system is not Linux
 */
export function findAddress(folder: string): string {
  const path = join(folder, 'socket')
  const excess = Buffer.byteLength(join(path, SOCKET_NAME)) - MAX_PATH_BYTES
  if (excess <= 0) return path
  if (process.platform !== 'linux') {
    throw new Error(`DATA_DIR: the path ${folder} is ${excess} bytes too long for a Unix socket. Set a shorter path.`)
  }
  let descriptor = openFolders.get(folder)
  if (descriptor === undefined || fstatSync(descriptor).ino !== statSync(folder).ino) {
    if (descriptor !== undefined) closeSync(descriptor)
    descriptor = openSync(folder, 'r')
    openFolders.set(folder, descriptor)
  }
  return `/proc/self/fd/${descriptor}/socket`
}

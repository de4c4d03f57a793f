import pg from 'pg'
import { unavailable } from '../errors.ts'

/** What a caller is told of a fault: that a second try may do, or just what it was. */
export function rethrowAsUnavailable(error: unknown): never {
  throw isUnreachable(error) || isTransient(error) || isStale(error) ? unavailable(error) : error
}

/** A deadlock's victim, and a statement that waited too long for its locks: asked again, it works. */
function isTransient(error: unknown): boolean {
  return error instanceof pg.DatabaseError && /^(40P01|40001|55P03|57014)$/.test(error.code ?? '')
}

/**
 * Tells that a connection is of no more use: its server only reads, and so is a primary no more; or the statements prepared on it
 * aren't what they were, since a migration has changed what one returns, or somebody has taken them away. On another it works.
 */
export function isStale(error: unknown): boolean {
  if (!(error instanceof pg.DatabaseError)) return false
  const isStale = error.code === '0A000' && error.routine === 'RevalidateCachedQuery'
  return isStale || /^(25006|26000|42P05)$/.test(error.code ?? '')
}

/** How pg and its pool begin to tell of connections that are lost, or can't be had. Of these they give words alone, and no code. */
const WORDS = [
  'Connection terminated',
  'timeout expired',
  'timeout exceeded when trying to connect',
  'Query read timeout',
  'Client has encountered a connection error',
  'Client was closed',
  'Cannot use a pool',
]

/** Connection faults, shutdowns and fail-overs: SQLSTATE classes 08 and 57P, 53300, 25006, and the socket's own errors. */
export function isUnreachable(error: unknown): boolean {
  if (error instanceof pg.DatabaseError) return /^(08...|57P0.|53300|25006)$/.test(error.code ?? '')
  const { code, message = '' } = error as NodeJS.ErrnoException
  if (code === undefined) return WORDS.some(words => message.startsWith(words))
  return /^(ECONN|EPIPE|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EHOST|ENET|ENOENT|EADDRNOTAVAIL)/.test(code)
}

/** A fault of the same kind that is found out here. @param code as the socket would give it */
export function unreachableError(message: string, code: 'ETIMEDOUT' | 'EHOSTUNREACH' | 'ECONNABORTED'): Error {
  return Object.assign(new Error(message), { code })
}

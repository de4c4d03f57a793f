import pg from 'pg'
import { unavailable } from '../errors.ts'

/** What a caller is told of a fault: that a second try may do, or just what it was. */
export function rethrow(error: unknown): never {
  throw isUnreachable(error) || isPassing(error) || isOutlived(error) ? unavailable(error) : error
}

/** A deadlock's victim, and a statement that waited too long for its locks: asked again, it works. */
function isPassing(error: unknown): boolean {
  return error instanceof pg.DatabaseError && /^(40P01|40001|55P03|57014)$/.test(error.code ?? '')
}

/**
 * Tells that a connection is of no more use: its server only reads, and so is a primary no more; or the statements prepared on it
 * aren't what they were, since a migration has changed what one returns, or somebody has taken them away. On another it works.
 */
export function isOutlived(error: unknown): boolean {
  if (!(error instanceof pg.DatabaseError)) return false
  const isStale = error.code === '0A000' && error.routine === 'RevalidateCachedQuery'
  return isStale || /^(25006|26000|42P05)$/.test(error.code ?? '')
}

/** Connection faults, shutdowns and fail-overs: SQLSTATE classes 08 and 57P, 53300, 25006, and the socket's own errors. */
export function isUnreachable(error: unknown): boolean {
  if (error instanceof pg.DatabaseError) {
    return /^(08...|57P0.|53300|25006)$/.test(error.code ?? '')
  }
  const { code, message } = error as NodeJS.ErrnoException
  return (
    (code !== undefined && /^(ECONN|EPIPE|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EHOST|ENET|ENOENT|EADDRNOTAVAIL)/.test(code)) ||
    /Connection terminated|timeout exceeded when trying to connect|timeout expired|Query read timeout|not queryable|Cannot use a (pool|pipeline)/.test(
      message ?? '',
    )
  )
}

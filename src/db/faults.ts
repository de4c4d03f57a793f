import pg from 'pg'
import { unavailable } from '../errors.ts'

/** What a caller is told of a fault: that a second try may do, or just what it was. */
export function rethrow(error: unknown): never {
  throw isUnreachable(error) || isPassing(error) ? unavailable(error) : error
}

/** A deadlock's victim, and a statement that waited too long for its locks: asked again, it works. */
function isPassing(error: unknown): boolean {
  return error instanceof pg.DatabaseError && /^(40P01|40001|57014)$/.test(error.code ?? '')
}

/** A server that only reads is a primary no more. */
export function isReadOnly(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '25006'
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

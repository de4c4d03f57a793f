import pg from 'pg'
import { AppError, unavailable } from '../errors.ts'

/** Rethrows a database error. If a second try may succeed, throws `unavailable` (503) instead. */
export function rethrowAsUnavailable(error: unknown): never {
  throw isUnreachable(error) || isTransient(error) || isStale(error) ? unavailable(error) : error
}

/**
 * Returns whether a second try of a statement may succeed. A deadlock, a serialization failure, a timeout or a full
 * disk ended the statement, or the server refused the login, because an operator is changing the password or
 * pg_hba.conf.
 */
function isTransient(error: unknown): boolean {
  return (
    error instanceof pg.DatabaseError &&
    /^(25P03|25P04|28000|28P01|40P01|40001|53100|53200|55P03|57014)$/.test(error.code ?? '')
  )
}

/** Returns whether a statement failed because it names a table that does not exist, so no migration has run yet. */
export function isUndefinedTable(error: unknown): boolean {
  return (error as { code?: string }).code === '42P01'
}

/** Returns whether a transaction failed with `unavailable` because of a deadlock or a serialization failure. */
export function isConflict(error: unknown): boolean {
  return /^(40P01|40001)$/.test(findSqlState(error))
}

/** Returns whether a transaction failed with `unavailable` because a lock was not free within `lock_timeout`. */
export function isLockTimeout(error: unknown): boolean {
  return findSqlState(error) === '55P03'
}

/** Returns whether PostgreSQL refused a statement because an earlier statement of the transaction has failed. */
export function isInFailedTransaction(error: unknown): boolean {
  return findSqlState(error) === '25P02'
}

/** Returns the SQLSTATE of an error, or of the error that caused it. */
function findSqlState(error: unknown): string {
  const cause = error instanceof AppError ? error.cause : error
  return (cause instanceof pg.DatabaseError && cause.code) || ''
}

/**
 * Returns whether the error means that the connection must be closed. There are two cases. The server became read-only,
 * because it is no longer the primary. Or a prepared statement of the connection is stale. A migration changed the
 * result columns of the statement, or another client of the same pooler deallocated the statement.
 */
export function isStale(error: unknown): boolean {
  if (!(error instanceof pg.DatabaseError)) return false
  const returnsOtherColumns = error.code === '0A000' && error.routine === 'RevalidateCachedQuery'
  return returnsOtherColumns || /^(25006|26000|42P05)$/.test(error.code ?? '')
}

/** The beginnings of the messages with which pg and its pool report connection errors. These errors have no `code`. */
const CONNECTION_ERROR_MESSAGES = [
  'Connection terminated',
  'timeout expired',
  'timeout exceeded when trying to connect',
  'Query read timeout',
  'Client has encountered a connection error',
  'Client was closed',
  'Cannot use a pool',
]

/**
 * Returns whether the connection failed, or the server shut down or failed over. Such an error is a socket error, or
 * its SQLSTATE is 08xxx, 57P0x, 53300 or 25006. If Citus loses one of its workers during a transaction, the SQLSTATE is
 * XX000, and only the name of the C function tells this error from others.
 */
export function isUnreachable(error: unknown): boolean {
  if (error instanceof pg.DatabaseError) {
    const hasLostWorker = error.code === 'XX000' && error.routine === 'MarkRemoteTransactionFailed'
    return hasLostWorker || /^(08...|57P0.|53300|25006)$/.test(error.code ?? '')
  }
  const { code, message = '' } = error as NodeJS.ErrnoException
  if (code === undefined) return CONNECTION_ERROR_MESSAGES.some(start => message.startsWith(start))
  return /^(ECONN|EPIPE|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EHOST|ENET|ENOENT|EADDRNOTAVAIL)/.test(code)
}

/** Returns an error that `isUnreachable` recognizes. @param code the error code of the corresponding socket error */
export function unreachableError(message: string, code: 'ETIMEDOUT' | 'EHOSTUNREACH' | 'ECONNABORTED'): Error {
  return Object.assign(new Error(message), { code })
}

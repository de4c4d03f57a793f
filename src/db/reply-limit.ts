import { setTimeout as delay } from 'node:timers/promises'
import { unavailable } from '../errors.ts'
import { unreachableError } from './errors.ts'

const MAX_WAIT_MS = 4_000

/**
 * Waits at most 4 s for the replies to statements. A program that monitors the service gives up after some seconds, and
 * the connections need up to 38 s to notice that a database is silent.
 * @throws AppError `unavailable` if the replies do not arrive in time
 */
export async function requireReplyInTime<T>(replies: Promise<T>): Promise<T> {
  const replied = new AbortController()
  const timeout = delay(MAX_WAIT_MS, undefined, { signal: replied.signal, ref: false }).then(() => {
    throw unavailable(unreachableError('the database has not replied in time', 'ETIMEDOUT'))
  })
  try {
    return await Promise.race([replies, timeout])
  } finally {
    timeout.catch(() => {})
    replied.abort()
  }
}

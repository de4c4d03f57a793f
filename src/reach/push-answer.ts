import type { PushAnswer } from './push-client.ts'

/** The outcome of an answer. With `retryAt`, the push is tried again. */
export type Judgement = { outcome: string; retryAt?: Date }

/** The deadline of a push, and the number of attempts that have begun. */
type Tries = { attempts: number; deadline: Date | null }

const FIRST_RETRY_MS = 3_000
const MAX_RETRY_MS = 10 * 60_000

/**
 * Judges the answer of a push service. The push service took the push (`delivered`), does not know the subscription any
 * more (`gone`), asks us to try later (`failed`), or refused this push (`refused`). `rejected` means that it refused
 * our key or our request. Then the subscription may be good, and an operator must act.
 */
export function judge({ status, retryAfter }: PushAnswer, tries: Tries, now: Date): Judgement {
  if (status >= 200 && status < 300) return { outcome: 'delivered' }
  if (status === 404 || status === 410) return { outcome: 'gone' }
  if (status === 429 || status >= 500) return { outcome: 'failed', retryAt: findRetryTime(tries, retryAfter, now) }
  return { outcome: [400, 401, 403].includes(status) ? 'rejected' : 'refused' }
}

/**
 * Returns the time of the next attempt: after 3 s, then after twice the last wait, but at most 10 minutes later. A
 * longer wait that the push service asks for counts instead. At the deadline, the worker drops the push.
 * @param retryAfter the header `Retry-After`: a number of seconds or a date
 */
export function findRetryTime({ attempts, deadline }: Tries, retryAfter: string | undefined, now: Date): Date {
  const waitMs = Math.min(FIRST_RETRY_MS * 2 ** Math.max(0, attempts - 1), MAX_RETRY_MS)
  const times = [now.getTime() + waitMs, readRetryAfter(retryAfter, now) ?? 0]
  return new Date(Math.min(Math.max(...times), deadline?.getTime() ?? Number.POSITIVE_INFINITY))
}

function readRetryAfter(text: string | undefined, now: Date): number | undefined {
  if (text === undefined) return undefined
  if (/^\d+$/.test(text)) return now.getTime() + Number(text) * 1_000
  const time = text.endsWith(' GMT') ? Date.parse(text) : Number.NaN
  return Number.isNaN(time) ? undefined : time
}

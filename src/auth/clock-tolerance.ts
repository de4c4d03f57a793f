import { type Fragment, fragment } from '../db/statement.ts'
import { CODE_LIFETIME_MS } from './code-limits.ts'

/** A time that is further in the future than this comes from a process whose clock was ahead. */
const TOLERANCE_MS = 60_000

/**
 * Returns the latest start that a process with a correct clock can have written, plus 60 s. A wait or a window that
 * begins later counts as over. Otherwise, a clock that was a day ahead for a moment would make users wait for a day.
 */
export function findLatestStart(now: Date): Date {
  return new Date(now.getTime() + TOLERANCE_MS)
}

/**
 * Returns whether a code that ends at `expires_at` is live at `now`. If a code ends later than a new code would end,
 * the clock was ahead when the code was made. Such a code is not live.
 */
export function isCodeLive(now: Date): Fragment {
  const latestEnd = new Date(findLatestStart(now).getTime() + CODE_LIFETIME_MS)
  return fragment`(expires_at > ${now} and expires_at <= ${latestEnd})`
}

/** Returns whether a window of `ms` milliseconds that began at `since` runs at `now`. */
export function isWindowRunning(since: Fragment, ms: number, now: Date): Fragment {
  return fragment`(${since} > ${new Date(now.getTime() - ms)} and ${since} <= ${findLatestStart(now)})`
}

import { type Fragment, fragment } from '../db/statement.ts'

/** A time that lies further ahead than this was written by a process whose clock was ahead. */
const TOLERANCE_MS = 60_000

/**
 * Returns the latest time that another process can have written honestly. A wait or a window that begins later counts as
 * over. Otherwise, a clock that was a day ahead for a moment would make everybody wait for a day.
 */
export function findLatestStart(now: Date): Date {
  return new Date(now.getTime() + TOLERANCE_MS)
}

/** Returns whether a window of `ms` milliseconds that began at `since` runs at `now`. */
export function isWindowRunning(since: Fragment, ms: number, now: Date): Fragment {
  return fragment`(${since} > ${new Date(now.getTime() - ms)} and ${since} <= ${findLatestStart(now)})`
}

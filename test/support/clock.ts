import { mock } from 'node:test'

/**
 * Creates a clock for the app under test. Only the test moves this clock. The function replaces the global `Date` with
 * a mock, so the test and all libraries see the same time as the app. Timers run in real time.
 */
export function testClock(start = new Date('2026-11-28T10:00:00.000Z')) {
  mock.timers.enable({ apis: ['Date'], now: start })
  return {
    now: () => new Date(),
    /** Moves the clock forward. */
    advance(ms: number) {
      mock.timers.setTime(Date.now() + ms)
    },
    set(instant: Date | string) {
      mock.timers.setTime(new Date(instant).getTime())
    },
  }
}

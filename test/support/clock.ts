import { mock } from 'node:test'

/**
 * The clock of the app under test, moved by hand. `Date` itself is mocked, since the rate limit's library reads it; timers
 * go on as they are.
 */
export function testClock(start = new Date('2026-11-28T10:00:00.000Z')) {
  mock.timers.enable({ apis: ['Date'], now: start })
  return {
    now: () => new Date(),
    /** @param ms milliseconds to go forward */
    advance(ms: number) {
      mock.timers.setTime(Date.now() + ms)
    },
    set(instant: Date | string) {
      mock.timers.setTime(new Date(instant).getTime())
    },
  }
}

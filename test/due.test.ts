import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { planned } from '../src/games/due.ts'

const DAY_MS = 86_400_000

function reminder(startsAt: string, offset: { days: number } | { ms: number }, timeZone = 'Europe/Paris'): string {
  return planned(new Date(startsAt), [offset], timeZone)[0]!.dueAt.toISOString()
}

describe('when a reminder is due', () => {
  const cases: [string, string, { days: number } | { ms: number }, string][] = [
    ['an ordinary day', '2026-11-28T18:00:00+01:00', { days: 1 }, '2026-11-27T17:00:00.000Z'],
    [
      'over the end of summer time: the same wall clock',
      '2026-10-25T09:00:00+01:00',
      { days: 1 },
      '2026-10-24T07:00:00.000Z',
    ],
    ['over its beginning', '2026-03-29T09:00:00+02:00', { days: 1 }, '2026-03-28T08:00:00.000Z'],
    [
      'a wall time that the day before skips is an hour later',
      '2026-03-30T02:30:00+02:00',
      { days: 1 },
      '2026-03-29T01:30:00.000Z',
    ],
    ['one that it shows twice is the first', '2026-10-26T02:30:00+01:00', { days: 1 }, '2026-10-25T00:30:00.000Z'],
    ['from the second 02:30 of a clock change', '2026-10-25T02:30:00+01:00', { days: 1 }, '2026-10-24T00:30:00.000Z'],
    ['hours are elapsed time', '2026-10-25T04:00:00+01:00', { ms: 7_200_000 }, '2026-10-25T01:00:00.000Z'],
    ['a leap day', '2028-03-01T18:00:00+01:00', { days: 1 }, '2028-02-29T17:00:00.000Z'],
    ['fractions of a second are kept', '2026-11-28T18:00:00.250+01:00', { days: 1 }, '2026-11-27T17:00:00.250Z'],
  ]
  for (const [name, startsAt, offset, due] of cases) {
    test(name, () => assert.equal(reminder(startsAt, offset), due))
  }

  test('the process’s own zone makes no difference', () => {
    const program = `import { planned } from ${JSON.stringify(new URL('../src/games/due.ts', import.meta.url).href)}
      console.log(planned(new Date('2026-10-25T09:00:00+01:00'), [{ days: 1 }], 'Europe/Paris')[0].dueAt.toISOString())`
    const env = { ...process.env, TZ: 'Asia/Tokyo' }
    const output = execFileSync(process.execPath, ['--input-type=module', '-e', program], { env, encoding: 'utf8' })
    assert.equal(output, '2026-10-24T07:00:00.000Z\n')
  })

  test('in any zone: days before, within an hour or two, and the same on the clock but for skipped times', () => {
    const zones = fc.constantFrom(
      'Europe/Paris',
      'America/New_York',
      'Asia/Tokyo',
      'Australia/Lord_Howe',
      'America/St_Johns',
      'UTC',
    )
    fc.assert(
      fc.property(
        fc.date({ min: new Date('2020-01-01'), max: new Date('2040-01-01'), noInvalidDate: true }),
        fc.integer({ min: 1, max: 60 }),
        zones,
        (startsAt, days, timeZone) => {
          const due = planned(startsAt, [{ days }], timeZone)[0]!.dueAt
          const elapsed = startsAt.getTime() - due.getTime()
          assert.ok(Math.abs(elapsed - days * DAY_MS) <= 2 * 3_600_000)
          const clock = new Intl.DateTimeFormat('en-GB', { timeZone, timeStyle: 'medium' })
          const skipped = Math.abs(elapsed - days * DAY_MS) > 0
          assert.ok(clock.format(due) === clock.format(startsAt) || skipped || elapsed === days * DAY_MS)
        },
      ),
      { numRuns: 2_000 },
    )
  })
})

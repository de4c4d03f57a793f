import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { dueTimes } from '../src/games/due-times.ts'

const DAY_MS = 86_400_000
const QUARTER_MS = 900_000

function reminder(startsAt: string, offset: { days: number } | { ms: number }, timeZone = 'Europe/Paris'): string {
  return dueTimes(new Date(startsAt), [offset], timeZone)[0]!.dueAt.toISOString()
}

describe('the due time of a reminder', () => {
  const cases: [string, string, { days: number } | { ms: number }, string][] = [
    [
      'a reminder one day before a game is due at the same wall-clock time as the start',
      '2026-11-28T18:00:00+01:00',
      { days: 1 },
      '2026-11-27T17:00:00.000Z',
    ],
    [
      'a reminder one day before a game is due at the wall-clock time of the start, even if summer time ends meanwhile',
      '2026-10-25T09:00:00+01:00',
      { days: 1 },
      '2026-10-24T07:00:00.000Z',
    ],
    [
      'a reminder one day before a game is due at the wall-clock time of the start, even if summer time begins meanwhile',
      '2026-03-29T09:00:00+02:00',
      { days: 1 },
      '2026-03-28T08:00:00.000Z',
    ],
    [
      'if the clocks skip 02:30 on the day before a game at 02:30, the reminder is due at 03:30 on the day before',
      '2026-03-30T02:30:00+02:00',
      { days: 1 },
      '2026-03-29T01:30:00.000Z',
    ],
    [
      'if the wall-clock time of a game occurs twice on the day before, the reminder is due at the first occurrence',
      '2026-10-26T02:30:00+01:00',
      { days: 1 },
      '2026-10-25T00:30:00.000Z',
    ],
    [
      'if 02:30 occurs twice and a game starts at the second 02:30, the reminder is due at 02:30 on the day before',
      '2026-10-25T02:30:00+01:00',
      { days: 1 },
      '2026-10-24T00:30:00.000Z',
    ],
    [
      'even across a clock change, a reminder two hours before a game is due two elapsed hours before the start',
      '2026-10-25T04:00:00+01:00',
      { ms: 7_200_000 },
      '2026-10-25T01:00:00.000Z',
    ],
    [
      'a reminder one day before 1 March of a leap year is due on 29 February',
      '2028-03-01T18:00:00+01:00',
      { days: 1 },
      '2028-02-29T17:00:00.000Z',
    ],
    [
      'a due time keeps fractions of a second',
      '2026-11-28T18:00:00.250+01:00',
      { days: 1 },
      '2026-11-27T17:00:00.250Z',
    ],
  ]
  for (const [name, startsAt, offset, due] of cases) {
    test(name, () => assert.equal(reminder(startsAt, offset), due))
  }

  test('the due time does not depend on the time zone of the process', () => {
    const program = `import { dueTimes } from ${JSON.stringify(new URL('../src/games/due-times.ts', import.meta.url).href)}
      console.log(dueTimes(new Date('2026-10-25T09:00:00+01:00'), [{ days: 1 }], 'Europe/Paris')[0].dueAt.toISOString())`
    const env = { ...process.env, TZ: 'Asia/Tokyo' }
    const output = execFileSync(process.execPath, ['--input-type=module', '-e', program], { env, encoding: 'utf8' })
    assert.equal(output, '2026-10-24T07:00:00.000Z\n')
  })

  test('in every zone a reminder is due at the wall-clock time of the start, or later if a clock change skips this time', () => {
    const zones = ['Europe/Paris', 'America/New_York', 'Asia/Tokyo', 'Australia/Lord_Howe', 'America/St_Johns', 'UTC']
    // Generates the start of a game, in steps of a quarter of an hour. On each of the six dates, a clock change happens
    // in at least one of the zones. A start is at most four days after one of these dates.
    const quarters = fc
      .tuple(
        fc.constantFrom('2026-03-08', '2026-03-29', '2026-04-05', '2026-10-04', '2026-10-25', '2026-11-01'),
        fc.nat(384),
      )
      .map(([day, quarter]) => new Date(Date.parse(day) + quarter * QUARTER_MS))
    const anyTime = fc.date({ min: new Date('2020-01-01'), max: new Date('2040-01-01'), noInvalidDate: true })
    fc.assert(
      fc.property(
        fc.oneof(quarters, anyTime),
        fc.integer({ min: 1, max: 3 }),
        fc.constantFrom(...zones),
        (startsAt, days, timeZone) => {
          const due = dueTimes(startsAt, [{ days }], timeZone)[0]!.dueAt
          const calendar = new Intl.DateTimeFormat('sv', { timeZone, dateStyle: 'short', timeStyle: 'medium' })
          const toWallTime = (instant: number) => Date.parse(`${calendar.format(instant).replace(' ', 'T')}Z`)
          const wantedTime = toWallTime(startsAt.getTime()) - days * DAY_MS
          const nearby = Array.from(
            { length: 33 },
            (_, index) => startsAt.getTime() - days * DAY_MS + (index - 16) * QUARTER_MS,
          )
          const matching = nearby.find(instant => toWallTime(instant) === wantedTime)
          if (matching !== undefined) {
            assert.equal(due.getTime(), matching)
          } else {
            // The clocks go forward by 60 or 30 minutes and skip the wanted time. The due time must be later by the
            // same 60 or 30 minutes.
            const change = toWallTime(due.getTime()) - wantedTime
            assert.ok(change === 3_600_000 || change === 1_800_000)
            assert.equal(toWallTime(due.getTime() - change), wantedTime - change)
          }
        },
      ),
      { numRuns: 3_000 },
    )
  })
})

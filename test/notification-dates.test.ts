import assert from 'node:assert/strict'
import { test } from 'node:test'
import { dateAndTime, relativeDateAndTime } from '../src/notifications/dates.ts'
import { timeOfDay } from '../src/time/time-of-day.ts'

// In the expected dates, \u00a0 is the no-break space. All other spaces are ordinary. A line with "·" is a row with
// five columns: the current time, the instant, the time zone, the French text and the English text. A line without "·"
// describes the rows below it.
const RELATIVE = `
  The instant is 25 hours ahead, but its date is tomorrow, because the clocks go back on 25 October.
  2026-10-24T07:00Z · 2026-10-25T08:00Z · Europe/Paris · demain, dimanche 25\u00a0octobre, à 9\u00a0h\u00a000 · tomorrow, Sunday 25 October, at 09:00
  The instant is 48 hours and 40 minutes ahead, but its date is tomorrow, because tomorrow has 25 hours.
  2026-10-23T22:10Z · 2026-10-25T22:50Z · Europe/Paris · demain, dimanche 25\u00a0octobre, à 23\u00a0h\u00a050 · tomorrow, Sunday 25 October, at 23:50
  The current time is in the first minute of a day with 25 hours, and the instant is in the last minute of this day.
  2026-10-24T22:00Z · 2026-10-25T22:59Z · Europe/Paris · aujourd'hui à 23\u00a0h\u00a059 · today at 23:59
  The instants of the next two rows have the same local time, because this hour occurs twice on the day of the clock change.
  2026-10-24T12:00Z · 2026-10-25T00:30Z · Europe/Paris · demain, dimanche 25\u00a0octobre, à 2\u00a0h\u00a030 · tomorrow, Sunday 25 October, at 02:30
  2026-10-24T12:00Z · 2026-10-25T01:30Z · Europe/Paris · demain, dimanche 25\u00a0octobre, à 2\u00a0h\u00a030 · tomorrow, Sunday 25 October, at 02:30
  The instant is 23.5 hours ahead, but its date is the day after tomorrow, because the clocks go forward on 29 March.
  2026-03-28T22:30Z · 2026-03-29T22:00Z · Europe/Paris · le lundi 30\u00a0mars à 0\u00a0h\u00a000 · on Monday 30 March at 00:00
  The instant is two minutes ahead, but its date is tomorrow.
  2026-06-30T21:59Z · 2026-06-30T22:01Z · Europe/Paris · demain, mercredi 1er\u00a0juillet, à 0\u00a0h\u00a001 · tomorrow, Wednesday 1 July, at 00:01
  Tomorrow is in the next year.
  2026-12-31T11:00Z · 2026-12-31T23:00Z · Europe/Paris · demain, vendredi 1er\u00a0janvier 2027, à 0\u00a0h\u00a000 · tomorrow, Friday 1 January 2027, at 00:00
  The current year is the year in the time zone, not the year in UTC.
  2026-12-31T23:30Z · 2027-01-03T09:00Z · Europe/Paris · le dimanche 3\u00a0janvier à 10\u00a0h\u00a000 · on Sunday 3 January at 10:00
  A date in the next or the previous year includes the year.
  2026-12-30T11:00Z · 2027-01-01T17:00Z · Europe/Paris · le vendredi 1er\u00a0janvier 2027 à 18\u00a0h\u00a000 · on Friday 1 January 2027 at 18:00
  2027-01-01T11:00Z · 2026-12-31T20:30Z · Europe/Paris · le jeudi 31\u00a0décembre 2026 à 21\u00a0h\u00a030 · on Thursday 31 December 2026 at 21:30
  If the instant is yesterday, the text contains the full date.
  2026-08-02T11:00Z · 2026-08-01T16:00Z · Europe/Paris · le samedi 1er\u00a0août à 18\u00a0h\u00a000 · on Saturday 1 August at 18:00
  The instant is on a leap day.
  2028-01-02T11:00Z · 2028-02-29T08:09Z · Europe/Paris · le mardi 29\u00a0février à 9\u00a0h\u00a009 · on Tuesday 29 February at 09:09
  The day and the time depend on the time zone. The UTC offset of the last time zone is not a multiple of 30 minutes.
  2026-01-10T12:00Z · 2026-01-17T17:00Z · Asia/Tokyo · le dimanche 18\u00a0janvier à 2\u00a0h\u00a000 · on Sunday 18 January at 02:00
  2026-01-17T07:30Z · 2026-01-17T17:00Z · America/Los_Angeles · demain, samedi 17\u00a0janvier, à 9\u00a0h\u00a000 · tomorrow, Saturday 17 January, at 09:00
  2026-01-17T12:00Z · 2026-01-17T17:00Z · Asia/Kathmandu · aujourd'hui à 22\u00a0h\u00a045 · today at 22:45
`
const ROWS = RELATIVE.split('\n')
  .map(line => line.trim().split(' · '))
  .filter(row => row.length === 5)

for (const machine of ['UTC', 'Asia/Tokyo', 'America/Los_Angeles']) {
  test(`relative dates use the given time zone if the machine’s own time zone is ${machine}`, t => {
    const before = process.env.TZ
    t.after(() => {
      if (before === undefined) delete process.env.TZ
      else process.env.TZ = before
    })
    process.env.TZ = machine
    assert.equal(ROWS.length, 16)
    for (const [now = '', instant = '', timeZone = '', fr, en] of ROWS) {
      const clock = { now: new Date(now), timeZone }
      assert.equal(relativeDateAndTime(new Date(instant), 'fr', clock), fr)
      assert.equal(relativeDateAndTime(new Date(instant), 'en', clock), en)
    }
  })
}

test('the names of weekdays and months match `Intl` on each day of a leap year', () => {
  const name = (locale: string, options: Intl.DateTimeFormatOptions) => {
    const format = new Intl.DateTimeFormat(locale, { ...options, timeZone: 'UTC' })
    return (day: Date) => format.format(day)
  }
  const [jour, mois] = [name('fr', { weekday: 'long' }), name('fr', { month: 'long' })]
  const [weekday, month] = [name('en', { weekday: 'long' }), name('en', { month: 'long' })]
  const clock = { now: new Date('2028-07-01T00:00Z'), timeZone: 'UTC' }
  for (let count = 0; count < 366; count++) {
    const day = new Date(Date.UTC(2028, 0, 1 + count, 12))
    const date = day.getUTCDate()
    const ordinal = date === 1 ? '1er' : date
    assert.equal(dateAndTime(day, 'fr', clock), `${jour(day)} ${ordinal}\u00a0${mois(day)} à 12\u00a0h\u00a000`)
    assert.equal(dateAndTime(day, 'en', clock), `${weekday(day)} ${date} ${month(day)} at 12:00`)
  }
})

test('midnight is written as "0 h 00" in French and "00:00" in English, never with the hour 24', () => {
  assert.equal(timeOfDay(new Date('2026-01-16T23:00Z'), 'fr', 'Europe/Paris'), '0\u00a0h\u00a000')
  assert.equal(timeOfDay(new Date('2026-01-16T23:00Z'), 'en', 'Europe/Paris'), '00:00')
})

test('`dateAndTime` throws a RangeError for an invalid date or time zone', () => {
  const clock = { now: new Date('2026-01-10T12:00Z'), timeZone: 'Europe/Paris' }
  assert.throws(() => dateAndTime(new Date(Number.NaN), 'fr', clock), RangeError)
  assert.throws(() => dateAndTime(clock.now, 'fr', { ...clock, timeZone: 'Europe/Nowhere' }), RangeError)
})

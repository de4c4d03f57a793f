import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { findQuietEnd, type QuietHours } from '../src/reach/quiet-hours.ts'
import { findInstants, toWallTime } from '../src/time/wall-clock.ts'

const night = { enabled: true, from: '22:00', to: '08:00' }

function findEnd(instant: string, { zone = 'Europe/Paris', ...hours }: Partial<QuietHours> & { zone?: string } = {}) {
  return findQuietEnd(new Date(instant), { ...night, ...hours }, zone)
    ?.toISOString()
    .replace(':00.000Z', 'Z')
}

describe('ordinary days', () => {
  test('quiet hours over midnight end on the next morning', () => {
    assert.equal(findEnd('2026-01-10T20:59:59Z'), undefined)
    assert.equal(findEnd('2026-01-10T21:00:00Z'), '2026-01-11T07:00Z')
    assert.equal(findEnd('2026-01-10T23:30:00Z'), '2026-01-11T07:00Z')
    assert.equal(findEnd('2026-01-11T06:59:59.999Z'), '2026-01-11T07:00Z')
    assert.equal(findEnd('2026-01-11T07:00:00Z'), undefined)
  })

  test('quiet hours within a day end on the same day', () => {
    const siesta = { from: '13:00', to: '15:30' }
    assert.equal(findEnd('2026-07-10T10:59:00Z', siesta), undefined)
    assert.equal(findEnd('2026-07-10T11:00:00Z', siesta), '2026-07-10T13:30Z')
    assert.equal(findEnd('2026-07-10T13:30:00Z', siesta), undefined)
  })

  test('quiet hours that are off contain no instant', () => {
    assert.equal(findEnd('2026-01-10T23:30:00Z', { enabled: false }), undefined)
  })

  test('the hours are those of the time zone', () => {
    assert.equal(findEnd('2026-01-10T16:29:00Z', { zone: 'Asia/Kolkata' }), undefined)
    assert.equal(findEnd('2026-01-10T16:30:00Z', { zone: 'Asia/Kolkata' }), '2026-01-11T02:30Z')
    assert.equal(findEnd('2026-01-10T09:00:00Z', { zone: 'Pacific/Apia' }), '2026-01-10T19:00Z')
  })
})

describe('the days of a clock change', () => {
  test('the night is an hour shorter in spring and an hour longer in autumn', () => {
    // Paris, 29 March 2026: 02:00 becomes 03:00. 25 October 2026: 03:00 becomes 02:00.
    assert.equal(findEnd('2026-03-28T21:00:00Z'), '2026-03-29T06:00Z')
    assert.equal(findEnd('2026-10-24T20:00:00Z'), '2026-10-25T07:00Z')
  })

  test('a skipped time moves to the next time that exists', () => {
    assert.equal(findEnd('2026-03-28T23:00:00Z', { to: '02:30' }), '2026-03-29T01:00Z')
    assert.equal(findEnd('2026-03-29T00:59:59Z', { from: '02:30' }), undefined)
    assert.equal(findEnd('2026-03-29T01:00:00Z', { from: '02:30' }), '2026-03-29T06:00Z')
    // Both times are skipped, so this night has no quiet hours.
    assert.equal(findEnd('2026-03-29T01:00:00Z', { from: '02:10', to: '02:50' }), undefined)
  })

  test('of a time that occurs twice, `from` means the first and `to` the second', () => {
    assert.equal(findEnd('2026-10-25T00:29:59Z', { from: '02:30' }), undefined)
    assert.equal(findEnd('2026-10-25T00:30:00Z', { from: '02:30' }), '2026-10-25T07:00Z')
    assert.equal(findEnd('2026-10-25T01:10:00Z', { from: '02:30' }), '2026-10-25T07:00Z')
    assert.equal(findEnd('2026-10-25T00:45:00Z', { to: '02:30' }), '2026-10-25T01:30Z')
    assert.equal(findEnd('2026-10-25T01:30:00Z', { to: '02:30' }), undefined)
  })

  test('quiet hours that begin again before they end, because a time occurs twice, end on the next day', () => {
    assert.equal(findEnd('2026-10-24T12:00:00Z', { from: '02:30', to: '02:29' }), '2026-10-26T01:29Z')
  })

  test('in São Paulo, midnight was skipped in spring, and 23:00 to 24:00 occurred twice in autumn', () => {
    const zone = 'America/Sao_Paulo'
    // 4 November 2018: 00:00 became 01:00. 17 February 2018: 24:00 became 23:00.
    assert.equal(findEnd('2018-11-04T02:00:00Z', { zone, to: '00:30' }), '2018-11-04T03:00Z')
    assert.equal(findEnd('2018-11-04T02:59:00Z', { zone, from: '00:00' }), undefined)
    assert.equal(findEnd('2018-11-04T03:00:00Z', { zone, from: '00:00' }), '2018-11-04T10:00Z')
    assert.equal(findEnd('2018-02-18T01:30:00Z', { zone, from: '23:30' }), '2018-02-18T11:00Z')
    assert.equal(findEnd('2018-02-18T01:45:00Z', { zone, from: '22:00', to: '23:30' }), '2018-02-18T02:30Z')
  })

  test('on Lord Howe Island, the clocks change by half an hour', () => {
    const zone = 'Australia/Lord_Howe'
    // 4 October 2026: 02:00 becomes 02:30. 5 April 2026: 02:00 becomes 01:30.
    assert.equal(findEnd('2026-10-03T15:00:00Z', { zone, to: '02:15' }), '2026-10-03T15:30Z')
    assert.equal(findEnd('2026-04-04T14:45:00Z', { zone, from: '01:45' }), '2026-04-04T21:30Z')
    assert.equal(findEnd('2026-04-04T14:30:00Z', { zone, to: '01:45' }), '2026-04-04T15:15Z')
  })

  test('a day that Samoa skipped moves to the midnight after it', () => {
    // In Apia, 30 December 2011 did not exist: 29 December, 24:00, became 31 December, 00:00.
    const zone = 'Pacific/Apia'
    assert.equal(findEnd('2011-12-30T09:00:00Z', { zone }), '2011-12-30T18:00Z')
    assert.equal(findEnd('2011-12-30T09:00:00Z', { zone, from: '21:00', to: '23:30' }), '2011-12-30T09:30Z')
  })
})

describe('all zones', () => {
  const time = fc
    .tuple(fc.integer({ min: 0, max: 23 }), fc.integer({ min: 0, max: 59 }))
    .map(parts => parts.map(part => String(part).padStart(2, '0')).join(':'))
  const zone = fc.constantFrom(
    ...['Europe/Paris', 'America/Sao_Paulo', 'Australia/Lord_Howe', 'Asia/Kolkata', 'Pacific/Apia', 'America/St_Johns'],
    ...['Africa/Casablanca', 'Asia/Gaza', 'America/Havana', 'Antarctica/Troll', 'Pacific/Chatham', 'UTC'],
  )
  const instant = fc.date({ min: new Date('2000-01-01'), max: new Date('2037-01-01'), noInvalidDate: true })
  const hours = fc
    .record({ from: time, to: time })
    .filter(({ from, to }) => from !== to)
    .map(times => ({ enabled: true, ...times }))

  test('the end is after the instant and outside the quiet hours, and every instant until then has the same end', () => {
    fc.assert(
      fc.property(instant, hours, zone, fc.double({ min: 0, max: 1, noNaN: true }), (at, quiet, timeZone, part) => {
        const end = findQuietEnd(at, quiet, timeZone)
        if (!end) return
        assert.ok(end > at)
        assert.equal(findQuietEnd(end, quiet, timeZone), undefined)
        const between = new Date(at.getTime() + Math.floor((end.getTime() - at.getTime() - 1) * part))
        assert.deepEqual(findQuietEnd(between, quiet, timeZone), end)
      }),
      { numRuns: 3_000 },
    )
  })

  test('far from a clock change, an instant is in the quiet hours if the local time is', () => {
    fc.assert(
      fc.property(instant, hours, zone, (at, quiet, timeZone) => {
        const offsets = [-3, -2, -1, 0, 1, 2, 3].map(days => {
          const day = new Date(at.getTime() + days * 86_400_000)
          return toWallTime(day, timeZone) - day.getTime()
        })
        fc.pre(new Set(offsets).size === 1)
        const local = new Date(toWallTime(at, timeZone)).toISOString().slice(11, 16)
        const { from, to } = quiet
        const isQuiet = from < to ? from <= local && local < to : from <= local || local < to
        const end = findQuietEnd(at, quiet, timeZone)
        assert.equal(end !== undefined, isQuiet)
        if (!end) return
        assert.equal(new Date(toWallTime(end, timeZone)).toISOString().slice(11, 16), to)
        assert.ok(end.getTime() - at.getTime() <= 86_400_000)
      }),
      { numRuns: 3_000 },
    )
  })

  test('each instant of a wall-clock time has this wall-clock time', () => {
    fc.assert(
      fc.property(instant, zone, (at, timeZone) => {
        const wallTime = toWallTime(at, timeZone)
        const { first, last } = findInstants(wallTime, timeZone)
        assert.ok([first, last].includes(at.getTime()))
      }),
      { numRuns: 3_000 },
    )
  })
})

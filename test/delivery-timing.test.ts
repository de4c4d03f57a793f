import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { NOTIFICATION_TYPES, type NotificationType } from '../src/notification-types.ts'
import { isUrgent } from '../src/notifications/queue-deliveries.ts'
import { computeDeadline, findDelay, type GameState, isStale } from '../src/reach/timing.ts'

const NOW = new Date('2026-11-28T22:00:00.000Z')
const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

const after = (ms: number) => new Date(NOW.getTime() + ms)
const game = (startsInMs: number, cancelled = false): GameState => ({ startsAt: after(startsInMs), cancelled })
/** A notification of a game that was to start then when the notification was stored. */
const notification = (type: NotificationType, startsInMs: number) => ({
  type,
  startsAt: `${after(startsInMs).toISOString().slice(0, 19)}+00:00`,
})

suite('what is stale', () => {
  const games: Record<string, GameState | undefined> = {
    planned: game(HOUR_MS),
    started: game(-1),
    cancelled: game(HOUR_MS, true),
    moved: game(2 * HOUR_MS),
    'without a start': { startsAt: undefined, cancelled: false },
    unknown: undefined,
  }
  const stale: Partial<Record<NotificationType, string[]>> = {
    game_joined: ['started', 'cancelled'],
    game_left: ['started', 'cancelled'],
    game_full: ['started', 'cancelled'],
    game_reminder: ['started', 'cancelled', 'moved', 'without a start'],
    game_started: ['started', 'cancelled', 'moved', 'without a start'],
  }
  for (const type of NOTIFICATION_TYPES) {
    const expected = stale[type] ?? []
    test(`${type} is stale if its game is: ${expected.join(', ') || 'nothing'}`, () => {
      const found = Object.keys(games).filter(name => isStale(notification(type, HOUR_MS), games[name], NOW))
      assert.deepEqual(found, expected)
    })
  }

  test('a game start is not stale while the game has the start of the notification, although it has started', () => {
    assert.equal(isStale(notification('game_started', -5 * MINUTE_MS), game(-5 * MINUTE_MS), NOW), false)
  })

  test('a game has moved only if its start differs by a second', () => {
    const reminder = notification('game_reminder', HOUR_MS)
    assert.equal(isStale(reminder, game(HOUR_MS + 999), NOW), false)
    assert.equal(isStale(reminder, game(HOUR_MS + 1000), NOW), true)
    assert.equal(isStale(reminder, game(HOUR_MS - 1), NOW), true)
  })
})

suite('a delivery in quiet hours', () => {
  const quiet = { quietHours: { enabled: true, from: '22:00', to: '08:00' }, timeZone: 'UTC' }
  const quietEnd = after(10 * HOUR_MS)
  const beforeStart: NotificationType[] = ['game_joined', 'game_left', 'game_full', 'game_reminder', 'game_cancelled']
  const scores = NOTIFICATION_TYPES.filter(type => type.startsWith('score_'))

  test('nothing waits outside quiet hours', () => {
    for (const type of NOTIFICATION_TYPES) {
      const day = new Date('2026-11-28T21:59:59.999Z')
      assert.equal(findDelay(notification(type, DAY_MS), game(DAY_MS), quiet, day), undefined)
      const off = { ...quiet, quietHours: { ...quiet.quietHours, enabled: false } }
      assert.equal(findDelay(notification(type, DAY_MS), game(DAY_MS), off, NOW), undefined)
    }
  })

  for (const type of beforeStart) {
    test(`${type} waits until the end, but at most until an hour before the start that the game has now`, () => {
      const find = (startsInMs: number) => findDelay(notification(type, DAY_MS), game(startsInMs), quiet, NOW)
      assert.deepEqual(find(DAY_MS), quietEnd)
      assert.deepEqual(find(11 * HOUR_MS), quietEnd)
      assert.deepEqual(find(11 * HOUR_MS - 1), after(10 * HOUR_MS - 1))
      assert.deepEqual(find(HOUR_MS + 1), after(1))
      assert.equal(find(HOUR_MS), undefined)
      assert.equal(find(1), undefined)
    })
  }

  test('the start of a game leaves immediately', () => {
    assert.equal(findDelay(notification('game_started', 0), game(0), quiet, NOW), undefined)
  })

  test('a score, and the cancellation of a game that has started, wait until the end', () => {
    for (const type of [...scores, 'game_cancelled'] as NotificationType[]) {
      assert.deepEqual(findDelay(notification(type, -1), game(-1), quiet, NOW), quietEnd)
    }
    for (const type of scores) assert.deepEqual(findDelay(notification(type, 1), game(1), quiet, NOW), quietEnd)
  })

  test('a delivery about an unknown game uses the start in the notification', () => {
    assert.deepEqual(findDelay(notification('game_joined', 2 * HOUR_MS), undefined, quiet, NOW), after(HOUR_MS))
  })
})

test('the deadline is the start for reminders and cancellations, 15 minutes for game starts, and 48 hours for the others', () => {
  for (const type of NOTIFICATION_TYPES) {
    const find = (startsInMs: number) =>
      computeDeadline(notification(type, startsInMs), game(startsInMs), NOW).getTime() - NOW.getTime()
    const endsAtStart = type === 'game_reminder' || type === 'game_cancelled'
    const other = type === 'game_started' ? 15 * MINUTE_MS : 48 * HOUR_MS
    assert.equal(find(5 * HOUR_MS), endsAtStart ? 5 * HOUR_MS : other, type)
    assert.equal(find(10), endsAtStart ? MINUTE_MS : other, type)
    assert.equal(find(40 * DAY_MS), endsAtStart ? 28 * DAY_MS : other, type)
  }
  // A cancellation after the start may wait for the end of quiet hours.
  assert.deepEqual(computeDeadline(notification('game_cancelled', -1), game(-1), NOW), after(48 * HOUR_MS))
  const noStart = { type: 'game_cancelled' as const, startsAt: undefined }
  assert.deepEqual(computeDeadline(noStart, { startsAt: undefined, cancelled: true }, NOW), after(48 * HOUR_MS))
})

test('urgent are a cancellation within 24 hours of the start, and a reminder less than 3 hours before it', () => {
  const urgent = (type: NotificationType, ms: number) => isUrgent(type, after(ms), NOW)
  assert.equal(urgent('game_cancelled', DAY_MS), true)
  assert.equal(urgent('game_cancelled', DAY_MS + 1), false)
  assert.equal(urgent('game_cancelled', 0), false)
  assert.equal(urgent('game_reminder', 3 * HOUR_MS - 1), true)
  assert.equal(urgent('game_reminder', 3 * HOUR_MS), false)
  assert.equal(isUrgent('game_cancelled', undefined, NOW), false)
  const others = NOTIFICATION_TYPES.filter(type => type !== 'game_cancelled' && type !== 'game_reminder')
  for (const type of others) assert.equal(urgent(type, HOUR_MS), false, type)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NOTIFICATION_TYPES, type NotificationType } from '../src/notification-types.ts'
import { isUrgent } from '../src/notifications/queue-deliveries.ts'
import { type MailState, planMail, type Waiting } from '../src/reach/plan-mail.ts'
import type { Preferences } from '../src/reach/preferences.ts'
import { findQuietEnd } from '../src/reach/quiet-hours.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAYS = 6
const DELAYS = { emailAfterMs: 15 * MINUTE_MS, emailAfterUrgentMs: 2 * MINUTE_MS }
// The clocks go back in the night of the first day.
const START = Date.parse('2026-10-24T10:00:00Z')

const PREFERENCES: Preferences = {
  types: Object.fromEntries(
    NOTIFICATION_TYPES.map(type => [type, { push: true, email: true }]),
  ) as Preferences['types'],
  emailPaused: false,
  quietHours: { enabled: true, from: '22:00', to: '08:00' },
  timeZone: 'Europe/Paris',
  version: 1,
}

type Row = Waiting & { lookAt: Date; startsAt: Date }
type Sent = { at: Date; isUrgent: boolean; rows: Row[] }

/** A small generator of pseudo-random numbers from 0 to 1, so that a failure can be repeated. */
function randomNumbers(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

/**
 * Runs the decisions about the mails to one person over some days. Each minute, notifications may arrive or be read.
 */
function simulate(seed: number) {
  const random = randomNumbers(seed)
  const state: MailState = { ordinaryAt: undefined, urgentAt: undefined, hasUrgentMail: false, isBouncing: false }
  const rows = new Map<number, Row>()
  const sent: Sent[] = []
  for (let minute = 0; minute < DAYS * 24 * 60; minute += 1) {
    const now = new Date(START + minute * MINUTE_MS)
    if (random() < 0.02) {
      const row = makeRow(minute, now, random)
      rows.set(row.id, row)
    }
    const due = [...rows.values()].filter(({ lookAt }) => lookAt <= now)
    if (random() < 0.01) for (const row of due.slice(0, 2)) row.notification = undefined
    if (due.length === 0) continue
    const { dropped, held, mail } = planMail(due, state, PREFERENCES, { ...DELAYS, now })
    assert.equal(dropped.length + held.length + (mail?.ids.length ?? 0), due.length)
    for (const { id, until } of held) {
      assert.ok(until > now, 'a row never waits until a time that has come')
      rows.get(id)!.lookAt = until
    }
    if (mail) {
      sent.push({ at: now, isUrgent: mail.isUrgent, rows: mail.ids.map(id => rows.get(id)!) })
      if (mail.isUrgent) state.urgentAt = now
      else state.ordinaryAt = now
    }
    for (const id of [...dropped, ...(mail?.ids ?? [])]) rows.delete(id)
  }
  return { sent, rows }
}

function makeRow(id: number, now: Date, random: () => number): Row {
  const type = NOTIFICATION_TYPES[Math.floor(random() * NOTIFICATION_TYPES.length)]! as NotificationType
  const startsAt = new Date(now.getTime() + Math.floor(random() * 40 * 60) * MINUTE_MS)
  const urgent = isUrgent(type, startsAt, now)
  const data = { game_id: id, starts_at: startsAt.toISOString() }
  return {
    id,
    isUrgent: urgent,
    createdAt: now,
    lookAt: new Date(now.getTime() + (urgent ? DELAYS.emailAfterUrgentMs : DELAYS.emailAfterMs)),
    notification: { id, userId: 1, type, title: 't', message: 'm', actorNameLength: 0, data, createdAt: now },
    game: { startsAt, cancelled: type === 'game_cancelled' },
    startsAt,
  }
}

function assertApart(sent: readonly Sent[], minMs: number): void {
  for (const [index, { at }] of sent.entries()) {
    if (index > 0) assert.ok(at.getTime() - sent[index - 1]!.at.getTime() >= minMs)
  }
}

test('over days with many notifications, no person gets more mails than the limits allow, and none at night without need', () => {
  const counts = { ordinary: 0, urgent: 0 }
  for (let seed = 1; seed <= 20; seed += 1) {
    const { sent } = simulate(seed)
    const ordinary = sent.filter(mail => !mail.isUrgent)
    const urgent = sent.filter(mail => mail.isUrgent)
    counts.ordinary += ordinary.length
    counts.urgent += urgent.length
    assertApart(ordinary, 24 * HOUR_MS)
    assertApart(urgent, 10 * MINUTE_MS)
    const ids = sent.flatMap(({ rows }) => rows.map(({ id }) => id))
    assert.equal(new Set(ids).size, ids.length)
    for (const { at, isUrgent: isUrgentMail, rows } of sent) {
      assert.ok(rows.length > 0)
      for (const row of rows) {
        const ageMs = at.getTime() - row.createdAt.getTime()
        assert.ok(ageMs >= (row.isUrgent ? 2 : 15) * MINUTE_MS && ageMs <= 72 * HOUR_MS)
        if (isUrgentMail) assert.ok(row.isUrgent)
        // At night, a mail leaves only for a game start, or if the game starts within an hour.
        const leftMs = row.startsAt.getTime() - at.getTime()
        const isNeeded = row.notification!.type === 'game_started' || (leftMs > 0 && leftMs <= HOUR_MS)
        assert.ok(isNeeded || !findQuietEnd(at, PREFERENCES.quietHours, PREFERENCES.timeZone))
      }
    }
  }
  assert.ok(counts.ordinary > 40 && counts.urgent > 40, JSON.stringify(counts))
})

import assert from 'node:assert/strict'
import { type Harness, INTAKE_KEY } from './app.ts'
import { makeUser } from './factories.ts'

export const EVENTS = '/internal/v1/events'
export const BATCH = 'application/cloudevents-batch+json'

/**
 * All types of game events except `game_cancelled`. The list omits this type because a cancelled game never changes
 * again.
 */
export const TYPES_EXCEPT_CANCELLATION = [
  'game_created',
  'game_updated',
  'game_joined',
  'game_left',
  'game_full',
  'game_reminder',
  'game_started',
]

type StoredNotification = {
  type: string
  title: string
  message: string
  data: Record<string, unknown>
  actor_name_length: number
}

let eventCount = 0
let lastGameId = 1000

/** Returns the id of a game that has no events yet. */
export function newGameId(): number {
  lastGameId += 1
  return lastGameId
}

export async function makePlayer(h: Harness, firstName = 'Marie', locale: 'fr' | 'en' = 'fr'): Promise<number> {
  return (await makeUser(h, { firstName, locale })).id
}

/** Creates the players Anna, Bob, Chloé and David. Bob's language is English. */
export async function makeFourPlayers(h: Harness): Promise<[number, number, number, number]> {
  return [
    await makePlayer(h, 'Anna'),
    await makePlayer(h, 'Bob', 'en'),
    await makePlayer(h, 'Chloé'),
    await makePlayer(h, 'David'),
  ]
}

/** Returns a CloudEvent with a new id. By default its `time` is one second after the `time` of the previous event. */
export function cloudEvent(type: string, data: Record<string, unknown>, envelope: Record<string, unknown> = {}) {
  eventCount += 1
  return {
    specversion: '1.0',
    id: `event-${eventCount}`,
    source: '/games',
    type,
    time: new Date(Date.parse('2026-11-28T08:00:00Z') + eventCount * 1000).toISOString(),
    data: { starts_at: '2027-01-16T18:00:00+01:00', ...data },
    ...envelope,
  }
}

/** Returns the time of an event. @param minute minutes after 09:00 UTC; the test clock starts at 10:00 UTC */
export function atMinute(minute: number): { time: string } {
  return { time: new Date(Date.parse('2026-11-28T09:00:00Z') + minute * 60_000).toISOString() }
}

export function send(h: Harness, body: unknown, headers: Record<string, string> = {}) {
  return h.call('POST', EVENTS, { token: INTAKE_KEY, body, headers })
}

/** Reports an event and checks that it is accepted. @returns the number of notifications that the event caused */
export async function report(h: Harness, body: object): Promise<number> {
  const answer = await send(h, body)
  assert.equal(answer.status, 202, answer.text)
  return answer.body.notifications
}

export async function sendBatch(h: Harness, items: unknown, headers: Record<string, string> = {}) {
  return send(h, items, { 'content-type': BATCH, ...headers })
}

/** Returns a user's notifications, oldest first. */
export async function readNotifications(h: Harness, userId: number): Promise<StoredNotification[]> {
  return h.database.sql<StoredNotification>`
    select type, title, message, data, actor_name_length from notification where user_id = ${userId} order by id`
}

/** Returns the types of each user's notifications, oldest first. */
export async function readTypes(h: Harness, ...userIds: number[]): Promise<string[][]> {
  const rowsByUser = await Promise.all(userIds.map(userId => readNotifications(h, userId)))
  return rowsByUser.map(rows => rows.map(row => row.type))
}

export async function readGame(h: Harness, gameId: number) {
  const [row] = await h.database.sql`
    select creator_id, player_ids, starts_at, place, cancelled from game where id = ${gameId}`
  return row
}

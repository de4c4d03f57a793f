import assert from 'node:assert/strict'
import { type Harness, INTAKE_KEY } from './app.ts'
import { makeUser } from './factories.ts'

export const EVENTS = '/internal/v1/events'
export const BATCH = 'application/cloudevents-batch+json'

/** Every game event but the cancellation, which is final. */
export const LIVELY_TYPES = [
  'game_created',
  'game_updated',
  'game_joined',
  'game_left',
  'game_full',
  'game_reminder',
  'game_started',
]

type Told = { type: string; title: string; message: string; data: Record<string, unknown>; actor_name_length: number }

let events = 0
let games = 1000

/** A game nobody has heard of. */
export function newGame(): number {
  games += 1
  return games
}

export async function person(h: Harness, firstName = 'Marie', locale: 'fr' | 'en' = 'fr'): Promise<number> {
  return (await makeUser(h, { firstName, locale })).id
}

/** Four players: Anna, Bob (who reads English), Chloé and David. */
export async function four(h: Harness): Promise<[number, number, number, number]> {
  return [await person(h, 'Anna'), await person(h, 'Bob', 'en'), await person(h, 'Chloé'), await person(h, 'David')]
}

/** A CloudEvent with an id of its own, each later than the one before it by default. */
export function cloudEvent(type: string, data: Record<string, unknown>, envelope: Record<string, unknown> = {}) {
  events += 1
  return {
    specversion: '1.0',
    id: `fact-${events}`,
    source: '/games',
    type,
    time: new Date(Date.parse('2026-11-28T08:00:00Z') + events * 1000).toISOString(),
    data: { starts_at: '2027-01-16T18:00:00+01:00', ...data },
    ...envelope,
  }
}

/** @param minute of the hour before the clock's start */
export function at(minute: number): { time: string } {
  return { time: new Date(Date.parse('2026-11-28T09:00:00Z') + minute * 60_000).toISOString() }
}

export function send(h: Harness, body: unknown, headers: Record<string, string> = {}) {
  return h.call('POST', EVENTS, { token: INTAKE_KEY, body, headers })
}

/** Reports a fact that must be accepted. @returns how many were notified */
export async function happens(h: Harness, body: object): Promise<number> {
  const answer = await send(h, body)
  assert.equal(answer.status, 202, answer.text)
  return answer.body.notifications
}

export async function sendBatch(h: Harness, items: unknown, headers: Record<string, string> = {}) {
  return send(h, items, { 'content-type': BATCH, ...headers })
}

/** What a user was told, oldest first. */
export async function announcedTo(h: Harness, userId: number): Promise<Told[]> {
  return h.database.sql<Told>`
    select type, title, message, data, actor_name_length from notification where user_id = ${userId} order by id`
}

/** The types that each user was told of, oldest first. */
export async function typesAnnounced(h: Harness, ...userIds: number[]): Promise<string[][]> {
  const told = await Promise.all(userIds.map(userId => announcedTo(h, userId)))
  return told.map(rows => rows.map(row => row.type))
}

export async function gameRow(h: Harness, gameId: number) {
  const [row] = await h.database.sql`
    select creator_id, player_ids, starts_at, place, cancelled from game where id = ${gameId}`
  return row
}

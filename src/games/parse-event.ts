import { createHash } from 'node:crypto'
import { type AppError, invalid } from '../errors.ts'
import { canonicalInstant } from '../http/format/timestamp.ts'
import { compileCheck, trim } from '../http/validation.ts'
import { type CloudEvent, EVENT_TYPES, type EventType, eventSchema } from './schema.ts'

/** A reported event after validation. Instants are in the spelling of `canonicalInstant`, so they compare as texts. */
export type GameEvent = {
  id: string
  /** A hash of `source` and `id`: the identity of the event. */
  key: string
  /** A hash of the content. */
  digest: string
  type: EventType
  time: string
  gameId: number
  creatorId: number
  playerIds: readonly number[]
  actorId?: number | undefined
  /** The user who did it for the actor. */
  byId?: number | undefined
  startsAt?: string | undefined
  place?: string | undefined
  score?: { id?: number; sets: string } | undefined
}

const MAX_AHEAD_MINUTES = 5

const checks = new Map([...EVENT_TYPES, undefined].map(type => [type, compileCheck<CloudEvent>(eventSchema(type))]))

/**
 * Validates a CloudEvent.
 * @returns the event, or an error that names the invalid fields. It does not throw, because a batch has an answer for
 * each item
 */
export function parseEvent(input: unknown, now: Date): GameEvent | AppError {
  const checked = checks.get(readType(input))!(input)
  if ('fields' in checked) return invalid(checked.fields)
  const event = checked.value
  const time = canonicalInstant(event.time)!
  if (Date.parse(time) > now.getTime() + MAX_AHEAD_MINUTES * 60_000) {
    return invalid({
      time: [
        {
          fr: `Le champ time a plus de ${MAX_AHEAD_MINUTES} minutes d’avance.`,
          en: `The time field is more than ${MAX_AHEAD_MINUTES} minutes ahead.`,
        },
      ],
    })
  }
  const { data, type, id, source } = event
  const startsAt = data.starts_at === undefined ? undefined : canonicalInstant(data.starts_at)!
  const sorted = data.player_ids.toSorted((one, other) => one - other)
  return {
    id,
    // Neither contains NUL, so no two pairs join to the same text.
    key: hash(`${source}\0${id}`),
    // A hash of the parsed values, not of the bytes. Blanks, time zones and the order of keys or players do not matter.
    digest: hash(JSON.stringify({ type, time, data: { ...data, starts_at: startsAt, player_ids: sorted } })),
    type: type as EventType,
    time,
    gameId: data.game_id,
    creatorId: data.creator_id,
    playerIds: data.player_ids,
    actorId: data.actor_id,
    byId: data.by_id,
    startsAt,
    place: data.place,
    score: data.score,
  }
}

/** Returns the error for an event whose `source` and `id` belong to an event with other content. */
export function eventMismatch(): AppError {
  const text = {
    fr: 'Cet identifiant a déjà servi pour un autre contenu.',
    en: 'This id has been used for another content.',
  }
  return invalid({ id: [text] }, 'event_mismatch')
}

function readType(input: unknown): EventType | undefined {
  const type = (input as { type?: unknown } | null | undefined)?.type
  return typeof type === 'string' ? EVENT_TYPES.find(known => known === trim(type)) : undefined
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}

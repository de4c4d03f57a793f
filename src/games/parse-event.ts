import { createHash } from 'node:crypto'
import { AppError, invalid } from '../errors.ts'
import { trim } from '../http/format/plain-text.ts'
import { canonicalInstant } from '../http/format/timestamp.ts'
import { compileCheck } from '../http/validation.ts'
import { decodeData } from './event-data.ts'
import { type CloudEvent, EVENT_TYPES, type EventType, eventSchema } from './schema.ts'

/**
 * A reported event after validation. Instants have the format of `canonicalInstant`, so they can be compared as
 * strings.
 */
export type GameEvent = {
  id: string
  /** A hash of `source` and `id`. The key identifies the event. */
  key: string
  /** A hash of the event's content. The database stores only a keyed hash of this hash. */
  digest: string
  type: EventType
  time: string
  gameId: number
  creatorId: number
  playerIds: readonly number[]
  actorId?: number | undefined
  /**
   * The user who made the change, if this user is not the actor. For example, if a creator removes a player, this field
   * contains the creator, and `actorId` contains the player.
   */
  byId?: number | undefined
  startsAt?: string | undefined
  place?: string | undefined
  score?: { id?: number; sets: string } | undefined
}

const MAX_AHEAD_MINUTES = 5

/** The error for an event whose `time` is too far ahead. The clock of the producer or of the service is wrong. */
export const AHEAD = invalid({
  time: [
    {
      fr: `Le champ time a plus de ${MAX_AHEAD_MINUTES} minutes d’avance.`,
      en: `The time field is more than ${MAX_AHEAD_MINUTES} minutes ahead.`,
    },
  ],
})

const checksByType = new Map(
  [...EVENT_TYPES, undefined].map(type => [type, compileCheck<CloudEvent>(eventSchema(type))]),
)

/**
 * Validates a CloudEvent.
 * @returns the event, or an error that names the invalid fields. The error is not thrown, because each item of a batch
 *   gets its own result
 */
export function parseEvent(input: unknown, now: Date): GameEvent | AppError {
  const decoded = decodeData(input)
  if (decoded instanceof AppError) return decoded
  const checked = checksByType.get(readType(decoded))!(decoded)
  if ('fields' in checked) return invalid(checked.fields)
  const event = checked.value
  const time = canonicalInstant(event.time)!
  if (Date.parse(time) > now.getTime() + MAX_AHEAD_MINUTES * 60_000) {
    return AHEAD
  }
  const { data, type, id, source } = event
  const startsAt = data.starts_at === undefined ? undefined : canonicalInstant(data.starts_at)!
  const sortedPlayerIds = data.player_ids.toSorted((one, other) => one - other)
  return {
    id,
    // Neither `source` nor `id` contains NUL, so different pairs of `source` and `id` result in different strings.
    key: hash(`${source}\0${id}`),
    // The digest is a hash of the parsed values instead of the bytes. So the digest does not depend on white space, on
    // time zones, or on the order of JSON members and players.
    digest: hash(JSON.stringify({ type, time, data: { ...data, starts_at: startsAt, player_ids: sortedPlayerIds } })),
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

/** Returns the error for an event that has the same `source` and `id` as an earlier event, but different content. */
export function eventMismatch(): AppError {
  const text = {
    fr: 'Cet identifiant a déjà servi pour un autre contenu.',
    en: 'This id has already been used for an event with other content.',
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

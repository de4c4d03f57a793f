import { createHash } from 'node:crypto'
import { type AppError, invalid } from '../errors.ts'
import { canonicalInstant } from '../http/format/timestamp.ts'
import { compileCheck, trim } from '../http/validation.ts'
import { type CloudEvent, EVENT_TYPES, type EventType, eventSchema } from './schema.ts'

/** One reported fact, read and checked. Instants are in their canonical spelling, so that their order is that of texts. */
export type GameEvent = {
  id: string
  /** Names the fact among all: a hash of source and id. */
  key: string
  /** Of the content. */
  digest: string
  type: EventType
  time: string
  gameId: number
  creatorId: number
  playerIds: readonly number[]
  actorId?: number | undefined
  /** Who did it for the actor. */
  byId?: number | undefined
  startsAt?: string | undefined
  place?: string | undefined
  score?: { id?: number; sets: string } | undefined
}

const AHEAD_MINUTES = 5

const checks = new Map([...EVENT_TYPES, undefined].map(type => [type, compileCheck<CloudEvent>(eventSchema(type))]))

/**
 * Reads a CloudEvent.
 * @returns the fact, or the refusal that names what is wrong with it; nothing is thrown, since in a batch a refusal is an
 * answer like others
 */
export function parseEvent(input: unknown, now: Date): GameEvent | AppError {
  const checked = checks.get(readType(input))!(input)
  if ('fields' in checked) return invalid(checked.fields)
  const event = checked.value
  const time = canonicalInstant(event.time)!
  if (Date.parse(time) > now.getTime() + AHEAD_MINUTES * 60_000) {
    return invalid({
      time: [
        {
          fr: `Le champ time a plus de ${AHEAD_MINUTES} minutes d’avance.`,
          en: `The time field is more than ${AHEAD_MINUTES} minutes ahead.`,
        },
      ],
    })
  }
  const { data, type, id, source } = event
  const startsAt = data.starts_at === undefined ? undefined : canonicalInstant(data.starts_at)!
  const sorted = data.player_ids.toSorted((one, other) => one - other)
  return {
    id,
    // Neither can hold NUL, so that no other pair joins to the same text.
    key: hash(`${source}\0${id}`),
    // What was read rather than the bytes: blanks, the order of keys or players and a zone make no other content.
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

/** What is said of a fact whose source has used its id for another one. */
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

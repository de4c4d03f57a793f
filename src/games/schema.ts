import type { Static, TSchema } from 'typebox'
import { hasFormatControl, PLAIN_LINE } from '../http/format/plain-text.ts'
import { Type } from '../http/type.ts'
import { NOTIFICATION_TYPES } from '../notification-types.ts'

/**
 * All event types: the notification types, and the types `game_created` and `game_updated`. The events of these two
 * types only report the state of a game. They have no notification type.
 */
export const EVENT_TYPES = [...NOTIFICATION_TYPES, 'game_created', 'game_updated'] as const

export type EventType = (typeof EVENT_TYPES)[number]

const id = (example: number, description?: string) =>
  Type.Integer({
    minimum: 1,
    maximum: Number.MAX_SAFE_INTEGER,
    examples: [example],
    ...(description && { description }),
  })

const instant = (example: string, description: string) =>
  Type.String({
    format: 'date-time',
    description,
    examples: [example],
    rule: {
      fr: 'La date doit être un instant RFC 3339, tel que 2026-01-17T18:00:00+01:00.',
      en: 'The date must be an RFC 3339 instant such as 2026-01-17T18:00:00+01:00.',
    },
  })

const line = (field: string, maxLength: number, example: string, description: string) =>
  Type.String({
    maxLength,
    pattern: PLAIN_LINE,
    description,
    examples: [example],
    check: text => !hasFormatControl(text),
    rule: {
      fr: `Le champ ${field} doit tenir sur une ligne, en ${maxLength} caractères au plus, sans caractère invisible.`,
      en: `The ${field} field must be one line of at most ${maxLength} characters, without invisible characters.`,
    },
  })

const Score = Type.Object(
  { id: Type.Optional(id(3)), sets: line('data.score.sets', 100, '6-4 6-3', 'The score, on one line.') },
  { title: 'Score' },
)

const ACTOR = id(43, 'The user who caused the event. Required when a player joins or leaves: the id of this player.')
const STARTS_AT = instant('2026-01-17T18:00:00+01:00', 'The start of the game. Required in game events.')

const state = {
  game_id: id(12),
  creator_id: id(42),
  player_ids: Type.Array(id(42), {
    maxItems: 4,
    uniqueItems: true,
    description:
      'The ids of the players, without duplicates. A player without an account is a guest, with an id from 2^52 up.',
    examples: [[42, 43]],
  }),
  actor_id: Type.Optional(ACTOR),
  by_id: Type.Optional(id(42, 'The user who acted for the actor, such as a creator who removes a player.')),
  starts_at: Type.Optional(STARTS_AT),
  place: Type.Optional(line('data.place', 120, 'Court 2', 'The place of the game, on one line.')),
}

export const EventData = Type.Object(
  { ...state, score: Type.Optional(Score) },
  {
    title: 'EventData',
    description: 'The state of the game after the event. `score` is required in score events, and ignored in others.',
  },
)
const GameData = Type.Object({ ...state, starts_at: STARTS_AT })
const PlayerMoveData = Type.Object({ ...state, starts_at: STARTS_AT, actor_id: ACTOR })
const ScoreData = Type.Object({ ...state, score: Score })

const verbatim = (description: string, example: string) =>
  Type.String({ verbatim: true, minLength: 1, description, examples: [example] })

const envelope = {
  specversion: Type.Literal('1.0', {
    rule: { fr: 'Le champ specversion doit être « 1.0 ».', en: 'The specversion field must be "1.0".' },
  }),
  id: verbatim('Identifies the event together with `source`. A repeated event has no effect.', 'join-981'),
  source: verbatim('The service that reports the event.', '/games'),
  type: Type.Enum([...EVENT_TYPES], {
    description:
      'The kind of event. `game_created` and `game_updated` cause no notification. They only report the ' +
      'state of the game.',
    examples: ['game_joined'],
    rule: { fr: 'Ce type d’événement n’existe pas.', en: 'There is no such type of event.' },
  }),
  time: instant(
    '2026-01-10T09:00:00Z',
    'When the event happened. This time determines the order of the events of a game.',
  ),
}

const header = (schema: TSchema, description: string) =>
  Type.Optional(Type.String({ ...('examples' in schema && { examples: schema.examples }), description }))

/** The headers of an event in the binary mode, for the OpenAPI document. */
export const BinaryModeHeaders = Type.Object({
  'ce-specversion': header(envelope.specversion, 'Only in the binary mode, and required there: always `1.0`.'),
  'ce-id': header(envelope.id, 'Only in the binary mode: the `id` of the event, percent-encoded.'),
  'ce-source': header(envelope.source, 'Only in the binary mode: the `source` of the event, percent-encoded.'),
  'ce-type': header(envelope.type, 'Only in the binary mode: the `type` of the event.'),
  'ce-time': header(envelope.time, 'Only in the binary mode: the `time` of the event.'),
})

/** Returns a schema for the OpenAPI document: events whose type matches the pattern require members of `data`. */
function requireByType(pattern: string, required: string[]) {
  return { anyOf: [{ properties: { type: { not: { pattern } } } }, { properties: { data: { required } } }] }
}

/**
 * The schema of a CloudEvent 1.0 for the OpenAPI document. `eventSchema` adds the rules for `data` of each event type.
 */
export const CloudEvent = Type.Object(
  { ...envelope, data: EventData },
  {
    title: 'CloudEvent',
    description: 'A base64 text of the data, as JSON, may be in `data_base64` instead of `data`.',
    published: {
      required: Object.keys(envelope),
      oneOf: [{ required: ['data'] }, { required: ['data_base64'] }],
      allOf: [
        {
          properties: {
            data_base64: { type: 'string', contentEncoding: 'base64', contentMediaType: 'application/json' },
          },
        },
        requireByType('^game_', ['starts_at']),
        requireByType('^game_(joined|left)$', ['actor_id']),
        requireByType('^score_', ['score']),
      ],
    },
  },
)

/**
 * Returns the schema for events of a type. For an unknown type, `type` is undefined, and the function returns
 * `CloudEvent`, which accepts the events of all types.
 */
export function eventSchema(type: EventType | undefined) {
  if (type === undefined) return CloudEvent
  const isPlayerMove = type === 'game_joined' || type === 'game_left'
  return Type.Object({
    ...envelope,
    data: type.startsWith('score_') ? ScoreData : isPlayerMove ? PlayerMoveData : GameData,
  })
}

/** A CloudEvent after validation. */
export type CloudEvent = Static<typeof CloudEvent>

const count = Type.Integer({ description: 'The number of notifications that the event caused.', examples: [3] })

export const EventResult = Type.Object(
  { id: Type.String({ examples: ['join-981'] }), status: Type.Enum(['accepted', 'duplicate']), notifications: count },
  { title: 'EventResult' },
)

const RejectedEvent = Type.Object(
  {
    id: Type.Union([Type.String({ examples: ['join-982'] }), Type.Null()]),
    status: Type.Literal('rejected'),
    message: Type.String({ examples: ['Le champ data.starts_at est obligatoire.'] }),
    code: Type.String({ examples: ['validation_failed'] }),
    errors: Type.Optional(Type.Record(Type.String(), Type.Array(Type.String()))),
  },
  { title: 'RejectedEvent' },
)

export const BatchResult = Type.Object(
  {
    results: Type.Array(Type.Union([EventResult, RejectedEvent]), {
      description: 'One result for each event, in the order of the events.',
    }),
  },
  { title: 'BatchResult' },
)

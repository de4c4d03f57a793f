import type { Context } from '../context.ts'
import { AppError, invalid } from '../errors.ts'
import { type BodyRule, forbiddenCharacterError, mediaType, tooLarge } from '../http/body.ts'
import { toFailure } from '../http/failure.ts'
import type { App } from '../http/route.ts'
import { Type } from '../http/type.ts'
import { type Language, preferredLanguage } from '../language.ts'
import { isBinaryMode, nameHeaders, readBinaryEvent } from './binary-mode.ts'
import { type EventOutcome, ingestEvents } from './intake.ts'
import { EventGroups } from './intake-groups.ts'
import { AHEAD, eventMismatch, type GameEvent, parseEvent } from './parse-event.ts'
import { BatchResult, BinaryModeHeaders, CloudEvent, EventData, EventResult } from './schema.ts'

const BATCH_TYPE = 'application/cloudevents-batch+json'
const MAX_BATCH_SIZE = 100
const MAX_EVENT_BYTES = 64 * 1024

const BODY: BodyRule = {
  maxBytes: MAX_EVENT_BYTES,
  types: ['application/cloudevents+json', 'application/json', BATCH_TYPE],
  batch: { type: BATCH_TYPE, maxBytes: 1024 * 1024 },
  isPart: isBinaryMode,
}

/**
 * Registers the route for event reports.
 * @param ctx.sql connections that only the intake uses, so the transactions of the intake do not delay the requests of
 *   users
 * @returns the groups in which single events are ingested
 */
export function intakeRoutes(
  app: App,
  {
    sql,
    hints,
    keys,
    now,
    config,
    metrics,
    log,
  }: Pick<Context, 'sql' | 'hints' | 'keys' | 'now' | 'config' | 'metrics' | 'log'>,
): EventGroups {
  const ingest = async (events: readonly GameEvent[]) => {
    const settings = { now: now(), timeZone: config.timeZone, reminderOffsets: config.reminderOffsets }
    const { outcomes, skipped } = await ingestEvents({ sql, hints }, keys, events, settings)
    if (skipped > 0) {
      log.debug({ skipped }, 'skipped recipients without an account')
      metrics.countSkippedRecipients(skipped)
    }
    outcomes.forEach(({ status }, index) => {
      metrics.countEvent(events[index]!.type, status)
    })
    return outcomes
  }
  const groups = new EventGroups(ingest)
  // When the server has closed, events of closed connections may still wait.
  app.addHook('onClose', () => groups.drain())
  const countRefused = (error: AppError) => metrics.countEvent(undefined, error === AHEAD ? 'ahead' : 'rejected')
  app.route({
    method: 'POST',
    url: '/internal/v1/events',
    config: { access: 'producer', body: BODY },
    // Each event type has stricter rules than the schema in the OpenAPI document. Fastify could check only this schema,
    // so the handler validates the body instead.
    validatorCompiler: () => value => ({ value }),
    schema: {
      tags: ['Events'],
      operationId: 'reportEvents',
      summary: 'Report events about games and scores',
      description:
        'The body is a CloudEvent 1.0, or a batch of up to 100 events. In the binary mode of CloudEvents, the ' +
        'attributes are headers such as `ce-id`, percent-encoded, and the body is only `data`, as JSON. The events ' +
        'of a batch take effect in their order, and each event gets its own result. `source` and `id` identify an event. A repeated event has no ' +
        'effect and gets the status `duplicate`, so it is always safe to send an event again.',
      headers: BinaryModeHeaders,
      body: {
        content: {
          'application/cloudevents+json': { schema: CloudEvent },
          'application/json': { schema: Type.Union([CloudEvent, EventData]) },
          [BATCH_TYPE]: { schema: Type.Array(CloudEvent, { maxItems: MAX_BATCH_SIZE }) },
        },
      },
      response: { 200: Type.Union([EventResult, BatchResult]), 202: EventResult },
    },
    handler: async (request, reply) => {
      if (mediaType(request.headers['content-type']) === BATCH_TYPE) {
        const items = readItems(request.body)
        const receivedAt = now()
        const parsed = items.map(item => parseItem(item, receivedAt))
        for (const event of parsed) if (event instanceof AppError) countRefused(event)
        const events = parsed.filter((event): event is GameEvent => !(event instanceof AppError))
        const outcomes = events.length > 0 ? await ingest(events) : []
        const language = preferredLanguage(request.headers['accept-language'])
        return { results: toResults(items, parsed, outcomes, language) }
      }
      const isBinary = isBinaryMode(request.headers)
      const input = isBinary ? readBinaryEvent(request.raw.rawHeaders, request.body) : request.body
      const event = input instanceof AppError ? input : parseEvent(input, now())
      if (event instanceof AppError) {
        countRefused(event)
        throw isBinary ? nameHeaders(event) : event
      }
      const outcome = await groups.add(event)
      if (outcome.status === 'mismatch') throw isBinary ? nameHeaders(eventMismatch()) : eventMismatch()
      return reply.code(outcome.status === 'accepted' ? 202 : 200).send({ id: event.id, ...outcome })
    },
  })
  return groups
}

/**
 * Returns a result for each item of a batch, in the order of the items.
 * @param parsed the event or the validation error for each item
 * @param outcomes the outcomes of the events in `parsed`, in the order of the events
 */
function toResults(
  items: readonly unknown[],
  parsed: readonly (GameEvent | AppError)[],
  outcomes: readonly EventOutcome[],
  language: Language,
) {
  const remaining = outcomes.values()
  return parsed.map((event, index) => {
    if (event instanceof AppError) return rejected(items[index], event, language)
    const outcome = remaining.next().value!
    return outcome.status === 'mismatch'
      ? rejected(items[index], eventMismatch(), language)
      : { id: event.id, ...outcome }
  })
}

function readItems(body: unknown): unknown[] {
  if (!Array.isArray(body)) {
    throw invalid({ body: [{ fr: 'Le corps doit être une liste JSON.', en: 'The body must be a JSON array.' }] })
  }
  if (body.length > MAX_BATCH_SIZE) {
    const text = {
      fr: `Le corps a plus de ${MAX_BATCH_SIZE} éléments.`,
      en: `The body has more than ${MAX_BATCH_SIZE} items.`,
    }
    throw invalid({ body: [text] })
  }
  return body
}

function parseItem(item: unknown, now: Date): GameEvent | AppError {
  if (countBytes(item) > MAX_EVENT_BYTES) return tooLarge(MAX_EVENT_BYTES)
  return forbiddenCharacterError(item) ?? parseEvent(item, now)
}

/**
 * Returns the size of an item as compact JSON, in bytes. Returns Infinity if the item is nested too deeply for
 * `JSON.stringify`.
 */
function countBytes(item: unknown): number {
  try {
    return Buffer.byteLength(JSON.stringify(item))
  } catch {
    return Number.POSITIVE_INFINITY
  }
}

function rejected(item: unknown, error: AppError, language: Language) {
  const id = (item as { id?: unknown } | null)?.id
  const isUsable = typeof id === 'string' && id !== '' && forbiddenCharacterError(id) === undefined
  return { id: isUsable ? id : null, status: 'rejected' as const, ...toFailure(error, language) }
}

import type { Context } from '../context.ts'
import { AppError, invalid } from '../errors.ts'
import { type BodyRule, forbiddenCharacterError, mediaType, tooLarge } from '../http/body.ts'
import { toFailure } from '../http/failure.ts'
import type { App } from '../http/route.ts'
import { Type } from '../http/type.ts'
import { type Language, preferredLanguage } from '../language.ts'
import { type EventOutcome, ingestEvents } from './intake.ts'
import { eventMismatch, type GameEvent, parseEvent } from './parse-event.ts'
import { BatchResult, CloudEvent, EventResult } from './schema.ts'

const BATCH = 'application/cloudevents-batch+json'
const MAX_EVENTS = 100
const EVENT_BYTES = 64 * 1024

const BODY: BodyRule = {
  maxBytes: EVENT_BYTES,
  types: ['application/cloudevents+json', 'application/json', BATCH],
  batch: { type: BATCH, maxBytes: 1024 * 1024 },
}

/** @param ctx.sql the intake's own connections: its transactions are no business of people's requests */
export function intakeRoutes(
  app: App,
  { sql, now, config, metrics }: Pick<Context, 'sql' | 'now' | 'config' | 'metrics'>,
): void {
  app.route({
    method: 'POST',
    url: '/internal/v1/events',
    config: { access: 'producer', body: BODY },
    // What each type of event demands is more than the document's schema says, so that the handler itself checks.
    validatorCompiler: () => value => ({ value }),
    schema: {
      tags: ['Events'],
      operationId: 'reportEvents',
      summary: 'Report facts about games and scores',
      description:
        'A CloudEvent 1.0, or a batch of up to 100 that are answered one by one and take effect in their order. ' +
        '`source` and `id` name a fact: a repeat is a `duplicate` without effect, so that sending again is always safe.',
      body: {
        content: {
          'application/cloudevents+json': { schema: CloudEvent },
          'application/json': { schema: CloudEvent },
          [BATCH]: { schema: Type.Array(CloudEvent, { maxItems: MAX_EVENTS }) },
        },
      },
      response: { 200: Type.Union([EventResult, BatchResult]), 202: EventResult },
    },
    handler: async (request, reply) => {
      const settings = { now: now(), timeZone: config.timeZone, reminderOffsets: config.reminderOffsets }
      const take: Take = async events => {
        const { outcomes, skipped } = await ingestEvents(sql, events, settings)
        if (skipped > 0) {
          request.log.debug({ skipped }, 'unknown recipients skipped')
          metrics.skippedRecipients(skipped)
        }
        outcomes.forEach(({ status }, index) => {
          metrics.event(events[index]!.type, status)
        })
        return outcomes
      }
      const refuse = () => metrics.event(undefined, 'rejected')
      if (mediaType(request.headers['content-type']) === BATCH) {
        const language = preferredLanguage(request.headers['accept-language'])
        return { results: await takeBatch(itemsOf(request.body), take, refuse, settings.now, language) }
      }
      const event = parseEvent(request.body, settings.now)
      if (event instanceof AppError) {
        refuse()
        throw event
      }
      const [outcome] = await take([event])
      if (outcome!.status === 'mismatch') throw eventMismatch()
      return reply.code(outcome!.status === 'accepted' ? 202 : 200).send({ id: event.id, ...outcome! })
    },
  })
}

type Take = (events: readonly GameEvent[]) => Promise<EventOutcome[]>

/** Every item gets its own answer, in order; a refused one costs the others nothing. */
async function takeBatch(items: readonly unknown[], take: Take, refuse: () => void, now: Date, language: Language) {
  const read = items.map(item => readItem(item, now))
  const events = read.filter((event): event is GameEvent => !(event instanceof AppError))
  for (const event of read) if (event instanceof AppError) refuse()
  const outcomes = events.length > 0 ? await take(events) : []
  const outcomeOf = new Map(events.map((event, index) => [event, outcomes[index]!]))
  return read.map((event, index) => {
    if (event instanceof AppError) return rejected(items[index], event, language)
    const outcome = outcomeOf.get(event)!
    return outcome.status === 'mismatch'
      ? rejected(items[index], eventMismatch(), language)
      : { id: event.id, ...outcome }
  })
}

function itemsOf(body: unknown): unknown[] {
  if (!Array.isArray(body)) {
    throw invalid({ body: [{ fr: 'Le corps doit être une liste JSON.', en: 'The body must be a JSON array.' }] })
  }
  if (body.length > MAX_EVENTS) {
    const text = { fr: `Le corps a plus de ${MAX_EVENTS} éléments.`, en: `The body has more than ${MAX_EVENTS} items.` }
    throw invalid({ body: [text] })
  }
  return body
}

function readItem(item: unknown, now: Date): GameEvent | AppError {
  if (bytesOf(item) > EVENT_BYTES) return tooLarge(EVENT_BYTES)
  return forbiddenCharacterError(item) ?? parseEvent(item, now)
}

/** As compact JSON; of what nests deeper than calls may, Infinity. */
function bytesOf(item: unknown): number {
  try {
    return Buffer.byteLength(JSON.stringify(item))
  } catch {
    return Number.POSITIVE_INFINITY
  }
}

function rejected(item: unknown, error: AppError, language: Language) {
  const id = (item as { id?: unknown } | null)?.id
  const usable = typeof id === 'string' && id !== '' && forbiddenCharacterError(id) === undefined
  return { id: usable ? id : null, status: 'rejected' as const, ...toFailure(error, language) }
}

import type { FastifyInstance } from 'fastify'
import type { Context } from '../context.ts'
import { AppError, notFound } from '../errors.ts'
import { isLocalRequest } from '../http/local.ts'
import type { App } from '../http/route.ts'
import { Type } from '../http/type.ts'
import { ingestEvents } from './intake.ts'
import { eventMismatch, parseEvent } from './parse-event.ts'
import { playedEvent, STORY_LENGTH } from './play.ts'

const Played = Type.Object({
  round: Type.Integer({ minimum: 0, maximum: 499_999 }),
  step: Type.Integer({ minimum: 0 }),
})

const PlayedStep = Type.Object({
  data: Type.Object({ type: Type.String(), step: Type.Integer(), steps: Type.Integer() }),
})

/**
 * `POST /dev/play`, only where the development mailbox is and for the same callers: reports one step of a story about the
 * signed-in user, as a games service would. So the page needs no intake key, and a page elsewhere, which can't send the
 * token, does nothing here. `round` tells one telling of the story from the next.
 */
export async function playRoutes(
  plugin: FastifyInstance,
  { sql, now, config }: Pick<Context, 'sql' | 'now' | 'config'>,
): Promise<void> {
  const app = plugin as unknown as App
  // A hook of the plugin comes before the guard of its route: to everybody else there is nothing here.
  app.addHook('onRequest', async request => {
    if (!isLocalRequest(request)) throw notFound()
  })

  app.route({
    method: 'POST',
    url: '/dev/play',
    config: { access: 'user', unlisted: true },
    schema: { hide: true, body: Played, response: { 200: PlayedStep } },
    handler: async request => {
      const { round, step } = request.body
      if (step >= STORY_LENGTH) throw notFound()
      const settings = { now: now(), timeZone: config.timeZone, reminderOffsets: config.reminderOffsets }
      const event = parseEvent(playedEvent(request.caller.userId, round, step, settings.now), settings.now)
      if (event instanceof AppError) throw event
      const { outcomes } = await ingestEvents(sql, [event], settings)
      if (outcomes[0]!.status === 'mismatch') throw eventMismatch()
      return { data: { type: event.type, step, steps: STORY_LENGTH } }
    },
  })
}

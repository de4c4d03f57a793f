import type { FastifyInstance } from 'fastify'
import type { Context } from '../context.ts'
import { AppError, notFound } from '../errors.ts'
import { isDevelopmentRequest } from '../http/local.ts'
import type { App } from '../http/route.ts'
import { Type } from '../http/type.ts'
import { demoEvent, STORY_LENGTH } from './demo-story.ts'
import { ingestEvents } from './intake.ts'
import { eventMismatch, parseEvent } from './parse-event.ts'

const DemoStep = Type.Object({
  round: Type.Integer({ minimum: 0, maximum: 499_999 }),
  step: Type.Integer({ minimum: 0 }),
})

const PlayedStep = Type.Object({
  data: Type.Object({ type: Type.String(), step: Type.Integer(), steps: Type.Integer() }),
})

/**
 * Registers `POST /dev/play`. Each request reports one event of the demo story, in which the signed-in user plays. The
 * page at `/` calls this route, so the page needs no intake key. The service handles the event like an event from a
 * games service. The body contains `step`, the index of the event, and `round`, the number of the repetition of the
 * story.
 *
 * The route exists only if the development mailbox exists, and it answers only local requests with the key of the
 * mailbox. A page from another origin cannot use the route, because such a page has no access token.
 */
export async function demoRoutes(
  plugin: FastifyInstance,
  ctx: Pick<Context, 'sql' | 'hints' | 'keys' | 'now' | 'config'> & { mailboxKey: string },
): Promise<void> {
  const { keys, now, config, mailboxKey } = ctx
  const app = plugin as unknown as App
  // This hook runs before the route's guard. So a request from another machine gets a 404, with or without a token.
  app.addHook('onRequest', async request => {
    if (!isDevelopmentRequest(request, mailboxKey)) throw notFound()
  })

  app.route({
    method: 'POST',
    url: '/dev/play',
    config: { access: 'user', unlisted: true },
    schema: { hide: true, body: DemoStep, response: { 200: PlayedStep } },
    handler: async request => {
      const { round, step } = request.body
      if (step >= STORY_LENGTH) throw notFound()
      const settings = { now: now(), timeZone: config.timeZone, reminderOffsets: config.reminderOffsets }
      const event = parseEvent(demoEvent(request.caller.userId, round, step, settings.now), settings.now)
      if (event instanceof AppError) throw event
      const { outcomes } = await ingestEvents(ctx, keys, [event], settings)
      if (outcomes[0]!.status === 'mismatch') throw eventMismatch()
      return { data: { type: event.type, step, steps: STORY_LENGTH } }
    },
  })
}

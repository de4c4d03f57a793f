import type { FastifyInstance, FastifyRequest } from 'fastify'
import { invalid, notFound, same } from '../errors.ts'
import { timestamp } from '../http/format/timestamp.ts'
import { isDevelopmentRequest, isLocalRequest } from '../http/local.ts'
import type { App } from '../http/route.ts'
import { Type } from '../http/type.ts'
import type { DevPush } from './dev-push.ts'

const MESSAGES_PATH = '/dev/push/messages'
/** The maximum size of a push (RFC 8030, section 7.2). */
const MAX_PUSH_BYTES = 4_096

const CONFIG = { access: 'public', unlisted: true } as const

const Made = Type.Object({
  endpoint: Type.String(),
  expirationTime: Type.Null(),
  keys: Type.Object({ p256dh: Type.String(), auth: Type.String() }),
})

const Messages = Type.Array(
  Type.Object({
    endpoint: Type.String(),
    sent_at: Type.String({ format: 'date-time' }),
    ttl: Type.Integer(),
    urgency: Type.String(),
    topic: Type.String(),
    message: Type.Object({}, { additionalProperties: true }),
  }),
)

/**
 * Adds the push service for development: `POST /dev/push/subscriptions` makes a subscription, the worker sends its
 * pushes to `POST /dev/push/messages/{id}`, and `GET /dev/push/messages.json` lists them, the newest first. As for the
 * development mailbox, a client on another machine gets the 404 of an unknown path. So does a client without the key of
 * the mailbox, except the worker, which knows the secret id.
 */
export async function devPushRoutes(
  plugin: FastifyInstance,
  { devPush, mailboxKey }: { devPush: DevPush; mailboxKey: string },
): Promise<void> {
  const app = plugin as unknown as App
  app.addContentTypeParser(
    'application/octet-stream',
    { parseAs: 'buffer', bodyLimit: MAX_PUSH_BYTES },
    async (_request: FastifyRequest, body: Buffer) => body,
  )
  app.addHook('onRequest', async (request, reply) => {
    const isPush = request.routeOptions.url === `${MESSAGES_PATH}/:id`
    if (!(isPush ? isLocalRequest(request) : isDevelopmentRequest(request, mailboxKey))) throw notFound()
    reply.header('cache-control', 'no-store')
  })

  app.route({
    method: 'POST',
    url: '/dev/push/subscriptions',
    config: CONFIG,
    schema: { hide: true, response: { 201: Made } },
    handler: async ({ socket }, reply) => {
      reply.code(201)
      const address = (socket.localAddress ?? '').replace(/^::ffff:/, '')
      const host = address.includes(':') ? `[${address}]` : address
      return devPush.subscribe(`http://${host}:${socket.localPort}${MESSAGES_PATH}`)
    },
  })

  app.route({
    method: 'GET',
    url: `${MESSAGES_PATH}.json`,
    config: CONFIG,
    schema: { hide: true, response: { 200: Messages } },
    handler: async () =>
      devPush.latest().map(({ sentAt, message, ...push }) => ({
        ...push,
        sent_at: timestamp(sentAt),
        message: message as Record<string, unknown>,
      })),
  })

  app.route({
    method: 'POST',
    url: `${MESSAGES_PATH}/:id`,
    config: CONFIG,
    schema: { hide: true, params: Type.Object({ id: Type.String() }) },
    handler: async ({ params, headers, body }, reply) => {
      const { ttl, urgency, topic } = headers
      const pushHeaders = { ttl: Number(ttl), urgency: String(urgency), topic: String(topic) }
      const outcome = devPush.receive(params.id, pushHeaders, Buffer.isBuffer(body) ? body : Buffer.alloc(0))
      if (outcome === 'unknown') throw notFound()
      if (outcome === 'unreadable') throw invalid({ body: [same('The push was not made for this subscription.')] })
      return reply.code(201).send()
    },
  })
}

import type { SwaggerTransform } from '@fastify/swagger'
import Fastify, { type FastifySchema, type RouteOptions } from 'fastify'
import manifest from '../../../package.json' with { type: 'json' }
import { JSON_BODY } from '../body.ts'
import { STATUS_CODES } from '../format/status.ts'
import type { App } from '../route.ts'
import { ERROR_RESPONSES, ErrorSchema, nameOf, THROTTLE_HEADERS } from './errors.ts'
import { exampleOf, publish, resolve, type Schema, type Schemas } from './schemas.ts'

export type Media = { schema: Schema; example?: unknown; examples?: Record<string, { value: unknown }> }
export type Headers = Record<string, { description: string }>
export type Response = { $ref?: string; description: string; headers?: Headers; content?: Record<string, Media> }
export type Parameter = { in: string; name: string; required?: boolean; description?: string; schema: Schema }
export type Operation = {
  operationId: string
  tags: string[]
  summary: string
  description?: string
  security: Record<string, string[]>[]
  parameters?: Parameter[]
  requestBody?: { required: boolean; content: Record<string, Media> }
  responses: Record<string, Response>
}
export type OpenApiDocument = {
  openapi: string
  info: { title: string; version: string; description: string }
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Schemas; responses: Record<string, Response> }
}

const DESCRIPTION = `${manifest.description}

Texts are French, or English when \`Accept-Language\` prefers it. Timestamps are ISO 8601 with an offset, identifiers are \
integers up to 2^53−1. Strings are trimmed, unknown keys ignored, \`null\` counts as absent. Every answer carries \
\`X-Request-Id\`. An unknown path is a 404, a method that a path hasn't a 405 with \`Allow\`.`

const SECURITY_SCHEMES = {
  bearer: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description: 'The `access_token` that `verify-otp` or `refresh` answered.',
  },
  intakeKey: { type: 'http', scheme: 'bearer', description: 'One of the service’s intake keys.' },
} as const

const SECURITY = { public: [], user: [{ bearer: [] }], producer: [{ intakeKey: [] }], operator: [] }

declare module 'fastify' {
  interface FastifyInstance {
    describeRoutes(): Promise<OpenApiDocument>
  }
}

/** Notes the routes that follow, to describe them when asked; to be called before the first one is added. */
export function recordRoutes(app: App): void {
  const routes: RouteOptions[] = []
  app.addHook('onRoute', ({ method, url, schema, config }) => {
    if (method !== 'HEAD') routes.push({ method, url, schema, config, handler: () => {} } as RouteOptions)
  })
  let made: Promise<OpenApiDocument> | undefined
  app.decorate('describeRoutes', () => {
    made ??= describe(routes)
    return made
  })
}

/** The OpenAPI 3.1 document of all routes; made at the first call and kept. */
export async function openapiDocument(app: App): Promise<OpenApiDocument> {
  await app.ready()
  return app.describeRoutes()
}

/**
 * The library is loaded only now, and watches a copy of the routes on an app that answers nothing: within the real one it
 * would cost every start some 40 ms.
 */
async function describe(routes: RouteOptions[]): Promise<OpenApiDocument> {
  const { default: swagger } = await import('@fastify/swagger')
  const copy = Fastify({ exposeHeadRoutes: false })
  copy.setValidatorCompiler(() => () => true)
  copy.setSerializerCompiler(() => JSON.stringify)
  await copy.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Courtside',
        version: manifest.version,
        description: DESCRIPTION,
        license: { name: 'MIT', identifier: 'MIT' },
      },
      servers: [{ url: '/' }],
      components: { securitySchemes: SECURITY_SCHEMES },
    },
    stripBasePath: false,
    hideUntagged: true,
    convertConstToEnum: false,
    transform: describeRoute as SwaggerTransform,
    transformObject: document => finish((document as { openapiObject: object }).openapiObject) as object,
  })
  for (const route of routes) copy.route(route)
  await copy.ready()
  const document = copy.swagger() as unknown as OpenApiDocument
  await copy.close()
  return document
}

/** What the library cannot know of a route, taken from its row. Error statuses stand without content until `finish`. */
function describeRoute({ schema = {}, url, route }: { schema?: FastifySchema; url: string; route: RouteOptions }) {
  const security = schema.security ?? SECURITY[route.config?.access ?? 'user']
  const described = {
    ...schema,
    security,
    consumes: route.config?.body?.types ?? JSON_BODY.types,
    response: {
      ...(schema.response as object),
      ...Object.fromEntries(refusals(schema, route, security).map(status => [status, {}])),
    },
    'x-throttled': route.config?.throttled === true,
  }
  return { schema: described, url }
}

/** The error statuses that a route can answer with. */
function refusals(schema: FastifySchema, { config }: RouteOptions, security: FastifySchema['security'] = []): number[] {
  const access = config?.access ?? 'user'
  const readsBody = schema.body !== undefined || config?.body !== undefined
  return [
    ...(security.length > 0 && !security.some(way => Object.keys(way).length === 0) ? [401] : []),
    // A user's path names something that may be somebody else's; a producer's route refuses a user's token.
    ...(access === 'producer' || (access === 'user' && schema.params) ? [403] : []),
    ...(schema.params ? [404] : []),
    ...(readsBody ? [413, 415] : []),
    ...(readsBody || schema.querystring || schema.headers ? [422] : []),
    ...(config?.throttled ? [429] : []),
    500,
    503,
  ]
}

function finish(generated: object): OpenApiDocument {
  // The schemas are those that the routes validate with: a copy is changed, never they.
  const document = JSON.parse(JSON.stringify(generated)) as OpenApiDocument
  const schemas: Schemas = { Error: ErrorSchema }
  for (const operation of Object.values(document.paths).flatMap(path => Object.values(path))) {
    finishOperation(operation as Operation & { 'x-throttled'?: boolean }, schemas)
  }
  Object.assign(document.components, { schemas, responses: ERROR_RESPONSES })
  return document
}

function finishOperation(operation: Operation & { 'x-throttled'?: boolean }, schemas: Schemas): void {
  const throttled = operation['x-throttled']
  delete operation['x-throttled']
  for (const parameter of operation.parameters ?? []) parameter.schema = publish(parameter.schema, schemas)
  if (operation.requestBody) {
    const medias = Object.values(operation.requestBody.content)
    for (const media of medias) finishMedia(media, schemas)
    // A body all of whose fields may be absent may itself be.
    operation.requestBody.required = medias.some(media => resolve(media.schema, schemas).required?.length)
  }
  for (const [status, response] of Object.entries(operation.responses)) {
    if (Number(status) >= 400) {
      operation.responses[status] = errorResponse(Number(status), throttled)
      continue
    }
    if (response.description === 'Default Response') response.description = STATUS_CODES[status]!
    if (throttled) response.headers = THROTTLE_HEADERS
    for (const media of Object.values(response.content ?? {})) finishMedia(media, schemas)
  }
}

function finishMedia(media: Media, schemas: Schemas): void {
  media.schema = publish(media.schema, schemas)
  if (!media.example && !media.examples) media.example = exampleOf(media.schema, schemas)
}

function errorResponse(status: number, throttled = false): Response {
  const name = nameOf(status)
  if (!throttled || status >= 500) return { $ref: `#/components/responses/${name}` } as Response
  const response = ERROR_RESPONSES[name]!
  return { ...response, headers: { ...response.headers, ...THROTTLE_HEADERS } }
}

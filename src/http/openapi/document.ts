import type { SwaggerTransform } from '@fastify/swagger'
import Fastify, { type FastifySchema, type RouteOptions } from 'fastify'
import manifest from '../../../package.json' with { type: 'json' }
import { JSON_BODY } from '../body.ts'
import { STATUS_CODES } from '../format/status.ts'
import type { App } from '../route.ts'
import { ERROR_RESPONSES, ErrorSchema, responseName, THROTTLE_HEADERS } from './errors.ts'
import { makeExample, publish, resolve, type Schema, type Schemas } from './schemas.ts'

export type Media = { schema: Schema; example?: unknown; examples?: Record<string, { value: unknown }> }
type Headers = Record<string, { description: string }>
type Response = { $ref?: string; description: string; headers?: Headers; content?: Record<string, Media> }
type Parameter = { in: string; name: string; required?: boolean; description?: string; schema: Schema }
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

Texts are in French, or in English if \`Accept-Language\` prefers it. Timestamps are ISO 8601 with an offset. \
Identifiers are integers up to 2^53−1. The service trims strings, ignores unknown keys and treats \`null\` as absent. \
Every answer has the header \`X-Request-Id\`. An unknown path gives 404. A method that the path does not support gives \
405 with \`Allow\`.`

const SECURITY_SCHEMES = {
  bearer: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description: 'The `access_token` from the answer of `verify-otp` or `refresh`.',
  },
  intakeKey: { type: 'http', scheme: 'bearer', description: 'One of the intake keys in the settings of the service.' },
} as const

const SECURITY = { public: [], user: [{ bearer: [] }], producer: [{ intakeKey: [] }], operator: [] }

declare module 'fastify' {
  interface FastifyInstance {
    describeRoutes(): Promise<OpenApiDocument>
  }
}

/** Records every route that is added after this call, for `describeRoutes`. Call it before the first route. */
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

/** Returns the OpenAPI 3.1 document of all routes. The first call makes it, later calls return the same one. */
export async function openapiDocument(app: App): Promise<OpenApiDocument> {
  await app.ready()
  return app.describeRoutes()
}

/**
 * Describes a copy of the routes, on a second app that answers no request. @fastify/swagger is loaded only here. In the
 * real app it would make every start some 40 ms slower.
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

/** Adds the facts that @fastify/swagger cannot know. `finish` fills in the content of the error statuses. */
function describeRoute({ schema = {}, url, route }: { schema?: FastifySchema; url: string; route: RouteOptions }) {
  const security = schema.security ?? SECURITY[route.config?.access ?? 'user']
  const described = {
    ...schema,
    security,
    consumes: route.config?.body?.types ?? JSON_BODY.types,
    response: {
      ...(schema.response as object),
      ...Object.fromEntries(errorStatuses(schema, route, security).map(status => [status, {}])),
    },
    'x-throttled': route.config?.throttled === true,
  }
  return { schema: described, url }
}

/** Returns the error statuses that a route can answer with. */
function errorStatuses(
  schema: FastifySchema,
  { config }: RouteOptions,
  security: FastifySchema['security'] = [],
): number[] {
  const access = config?.access ?? 'user'
  const readsBody = schema.body !== undefined || config?.body !== undefined
  return [
    ...(security.length > 0 && !security.some(way => Object.keys(way).length === 0) ? [401] : []),
    // An identifier in a user's path may belong to another user. A producer's route refuses a user's token.
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
  // The routes validate with these very schemas, so only a copy may change.
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
    // If every field of a body is optional, the body is too.
    operation.requestBody.required = medias.some(media => resolve(media.schema, schemas).required?.length)
  }
  for (const [status, response] of Object.entries(operation.responses)) {
    if (Number(status) >= 400) {
      operation.responses[status] = errorResponse(Number(status), throttled)
      continue
    }
    if (response.description === 'Default Response') response.description = STATUS_CODES[status]!
    if (throttled) response.headers = { ...response.headers, ...THROTTLE_HEADERS }
    for (const media of Object.values(response.content ?? {})) finishMedia(media, schemas)
  }
}

function finishMedia(media: Media, schemas: Schemas): void {
  media.schema = publish(media.schema, schemas)
  if (!media.example && !media.examples) media.example = makeExample(media.schema, schemas)
}

function errorResponse(status: number, throttled = false): Response {
  const name = responseName(status)
  if (!throttled || status >= 500) return { $ref: `#/components/responses/${name}` } as Response
  const response = ERROR_RESPONSES[name]!
  return { ...response, headers: { ...response.headers, ...THROTTLE_HEADERS } }
}

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

Texts are in English if \`Accept-Language\` prefers English to French. Otherwise they are in French. Timestamps are in \
ISO 8601 with an offset. Identifiers are integers up to 2^53−1. The service trims strings, ignores unknown members of \
JSON objects and treats \`null\` as absent. Every answer has the header \`X-Request-Id\`. A request for an unknown \
path gets 404. A method that the path does not support gets 405 with \`Allow\`, which lists the methods of the path. \
Numbers in queries and paths are decimal digits without a sign or leading zeros.`

const SECURITY_SCHEMES = {
  bearer: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description: 'The `access_token` that `verify-otp` or `refresh` returned.',
  },
  intakeKey: { type: 'http', scheme: 'bearer', description: 'One of the intake keys in the settings of the service.' },
} as const

const TAGS = [
  { name: 'Auth', description: 'Codes, sessions and the account of the signed-in user.' },
  { name: 'Levels', description: 'The levels that a user can choose from.' },
  { name: 'Events', description: 'Reports of a games service.' },
  { name: 'Notifications', description: 'The inbox of the signed-in user.' },
  { name: 'Push', description: 'The browsers to which the service sends pushes.' },
]

const SECURITY = { public: [], user: [{ bearer: [] }], producer: [{ intakeKey: [] }], operator: [] }

declare module 'fastify' {
  interface FastifyInstance {
    describeRoutes(): Promise<OpenApiDocument>
  }
}

/**
 * Records every route for `describeRoutes`. Call this function before you add the first route, because it does not
 * record routes that were added earlier.
 * @param title the title of the document
 */
export function recordRoutes(app: App, title: string): void {
  const routes: RouteOptions[] = []
  app.addHook('onRoute', ({ method, url, schema, config }) => {
    if (method !== 'HEAD') routes.push({ method, url, schema, config, handler: () => {} } as RouteOptions)
  })
  let document: Promise<OpenApiDocument> | undefined
  app.decorate('describeRoutes', () => {
    document ??= describe(routes, title)
    return document
  })
}

/**
 * Returns the OpenAPI 3.1 document of all routes. The first call creates the document. Later calls return the same
 * object.
 */
export async function openapiDocument(app: App): Promise<OpenApiDocument> {
  await app.ready()
  return app.describeRoutes()
}

/**
 * Generates the document with a second app that has a copy of the routes and answers no requests. Only this function
 * loads @fastify/swagger. In the real app, @fastify/swagger would delay every startup by some 40 ms.
 */
async function describe(routes: RouteOptions[], title: string): Promise<OpenApiDocument> {
  const { default: swagger } = await import('@fastify/swagger')
  const copy = Fastify({ exposeHeadRoutes: false })
  copy.setValidatorCompiler(() => () => true)
  copy.setSerializerCompiler(() => JSON.stringify)
  await copy.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title,
        version: manifest.version,
        description: DESCRIPTION,
        license: { name: 'MIT', identifier: 'MIT' },
      },
      servers: [{ url: '/' }],
      tags: TAGS,
      components: { securitySchemes: SECURITY_SCHEMES },
    },
    stripBasePath: false,
    hideUntagged: true,
    convertConstToEnum: false,
    transform: describeRoute as SwaggerTransform,
    transformObject: document => completeDocument((document as { openapiObject: object }).openapiObject) as object,
  })
  for (const route of routes) copy.route(route)
  await copy.ready()
  const document = copy.swagger() as unknown as OpenApiDocument
  await copy.close()
  return document
}

/**
 * Adds the security requirements, the media types and the error statuses to the schema of a route, because
 * @fastify/swagger cannot derive them. `completeDocument` adds the content of the error answers.
 */
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

/** Returns the error statuses with which a route can answer. */
function errorStatuses(
  schema: FastifySchema,
  { config }: RouteOptions,
  security: FastifySchema['security'] = [],
): number[] {
  const access = config?.access ?? 'user'
  const refusesBodies = (schema.body !== undefined || config?.body !== undefined) && !config?.body?.lenient
  return [
    ...(security.length > 0 && !security.some(option => Object.keys(option).length === 0) ? [401] : []),
    // A route for producers answers 403 to a user's token. A route for users answers 403 if the path contains the
    // identifier of an object that belongs to another user.
    ...(access === 'producer' || (access === 'user' && schema.params) ? [403] : []),
    ...(schema.params ? [404] : []),
    ...(refusesBodies ? [413, 415] : []),
    ...(refusesBodies || schema.querystring || schema.headers ? [422] : []),
    ...(config?.throttled ? [429] : []),
    500,
    503,
  ]
}

function completeDocument(generated: object): OpenApiDocument {
  // The generated document contains the schema objects with which the routes validate input. So this function changes
  // only a copy of the document.
  const document = JSON.parse(JSON.stringify(generated)) as OpenApiDocument
  const schemas: Schemas = { Error: ErrorSchema }
  for (const operation of Object.values(document.paths).flatMap(path => Object.values(path))) {
    completeOperation(operation as Operation & { 'x-throttled'?: boolean }, schemas)
  }
  const used = JSON.stringify(document.paths)
  const responses = Object.entries(ERROR_RESPONSES).filter(([name]) => used.includes(`#/components/responses/${name}"`))
  Object.assign(document.components, { schemas, responses: Object.fromEntries(responses) })
  return document
}

function completeOperation(operation: Operation & { 'x-throttled'?: boolean }, schemas: Schemas): void {
  const throttled = operation['x-throttled']
  delete operation['x-throttled']
  for (const parameter of operation.parameters ?? []) parameter.schema = publish(parameter.schema, schemas)
  if (operation.requestBody) {
    const medias = Object.values(operation.requestBody.content)
    for (const media of medias) completeMedia(media, schemas)
    // If every field of a body is optional, the body itself is optional too.
    operation.requestBody.required = medias.some(media => resolve(media.schema, schemas).required?.length)
  }
  for (const [status, response] of Object.entries(operation.responses)) {
    if (Number(status) >= 400) {
      operation.responses[status] = errorResponse(Number(status), throttled)
      continue
    }
    if (response.description === 'Default Response') response.description = STATUS_CODES[status]!
    if (throttled) response.headers = { ...response.headers, ...THROTTLE_HEADERS }
    for (const media of Object.values(response.content ?? {})) completeMedia(media, schemas)
  }
}

function completeMedia(media: Media, schemas: Schemas): void {
  media.schema = publish(media.schema, schemas)
  if (!media.example && !media.examples) media.example = makeExample(media.schema, schemas)
}

function errorResponse(status: number, throttled = false): Response {
  const name = responseName(status)
  if (!throttled || status >= 500) return { $ref: `#/components/responses/${name}` } as Response
  const response = ERROR_RESPONSES[name]!
  return { ...response, headers: { ...response.headers, ...THROTTLE_HEADERS } }
}

import { Ajv, type ValidateFunction } from 'ajv'
import type { FastifyInstance, FastifyRequest } from 'fastify'

/**
 * The result of a comparison of JSON answers with the schemas of their routes. The service itself does not filter its
 * answers by the schemas. `checked` contains "METHOD pattern status" for each answer that was compared. `violations`
 * describes each answer that differs from its schema.
 */
export type AnswerCheck = { checked: Set<string>; violations: string[] }

const ajv = new Ajv({ strict: false, formats: { 'date-time': true } })
const compiled = new Map<unknown, ValidateFunction>()

// The schema of every error answer. An error answer has only the members of this schema.
const ERROR = {
  type: 'object',
  required: ['message', 'code'],
  properties: {
    message: { type: 'string', minLength: 1 },
    code: { type: 'string' },
    errors: { type: 'object', additionalProperties: { type: 'array', items: { type: 'string' } } },
  },
}

/** The answers without a schema. The OpenAPI document needs no schema here, because other tests validate it. */
const WITHOUT_SCHEMA = ['GET /api/v1/openapi.json 200']

/**
 * Adds a hook that compares every JSON answer of an app with the schema of the route. Call this function before
 * `app.ready()`.
 */
export function checkAnswers(app: FastifyInstance<any, any, any, any, any>): AnswerCheck {
  const check: AnswerCheck = { checked: new Set(), violations: [] }
  app.addHook('onSend', (request, reply, payload, done) => {
    const isJson = /^application\/json/.test(String(reply.getHeader('content-type')))
    const isContent = typeof payload === 'string' || Buffer.isBuffer(payload)
    if (isJson && isContent) compare(check, request, reply.statusCode, String(payload))
    done(null, payload)
  })
  return check
}

function compare(check: AnswerCheck, request: FastifyRequest, status: number, payload: string): void {
  const { url: pattern, schema } = request.routeOptions
  const name = `${request.method} ${pattern} ${status}`
  const declared = status >= 400 ? ERROR : (schema?.response as Record<number, unknown> | undefined)?.[status]
  check.checked.add(name)
  if (WITHOUT_SCHEMA.includes(name.replace(/^HEAD/, 'GET'))) return
  if (declared === undefined) check.violations.push(`${name}: the route declares no schema`)
  else {
    const fault = findUndeclared(declared, JSON.parse(payload))
    if (fault !== undefined) check.violations.push(`${name}: ${fault}`)
  }
}

/**
 * Compares a value with its schema, which must declare every member of the value.
 * @returns a description of the differences, or undefined
 */
export function findUndeclared(schema: unknown, value: unknown): string | undefined {
  const validate = compile(schema)
  if (validate(value)) return undefined
  return `${ajv.errorsText(validate.errors)} ${JSON.stringify(validate.errors?.map(error => error.params))}`
}

function compile(schema: unknown): ValidateFunction {
  const known = compiled.get(schema)
  if (known) return known
  const validate = ajv.compile(refuseUndeclaredKeys(schema) as object)
  compiled.set(schema, validate)
  return validate
}

/**
 * Copies a schema. In the copy, objects accept only declared members, unless their schema has `additionalProperties`.
 */
function refuseUndeclaredKeys(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(refuseUndeclaredKeys)
  if (typeof schema !== 'object' || schema === null) return schema
  const copy: Record<string, unknown> = Object.fromEntries(
    Object.entries(schema).map(([key, part]) => [key, refuseUndeclaredKeys(part)]),
  )
  return copy.properties && copy.additionalProperties === undefined ? { ...copy, additionalProperties: false } : copy
}

import assert from 'node:assert/strict'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import type { Media, OpenApiDocument, Operation } from '../../src/http/openapi/document.ts'

export type ListedOperation = { method: string; path: string; operation: Operation }

export type Answer = { status: number; headers: Record<string, unknown>; body?: unknown; text: string }

/** Returns the operations of an OpenAPI document, in the order of the document. */
export function listOperations(document: OpenApiDocument): ListedOperation[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  )
}

/**
 * Returns a function that compiles a schema of an OpenAPI document.
 * @param closed whether an object may have only the members that its schema lists
 */
export function schemaCompiler({ components }: OpenApiDocument, { closed }: { closed: boolean }) {
  const ajv = new Ajv2020({ strict: false, validateFormats: false })
  const prepare = (value: object) => JSON.parse(JSON.stringify(value), closed ? close : undefined)
  ajv.addSchema(prepare({ $id: 'document', components }))
  return (schema: object): ValidateFunction =>
    ajv.compile(JSON.parse(JSON.stringify(prepare(schema)).replaceAll('"#/', '"document#/')))
}

/** Returns an assertion that an OpenAPI document lists the status, the media type and every member of an answer. */
export function documentedAnswers(document: OpenApiDocument) {
  const compile = schemaCompiler(document, { closed: true })
  return ({ method, path, operation }: ListedOperation, { status, headers, body, text }: Answer): void => {
    const where = `${method} ${path}: ${status} ${text}`
    const response = operation.responses[status]
    assert.ok(response, where)
    const { content = {} } = response.$ref ? document.components.responses[response.$ref.split('/').at(-1)!]! : response
    const media: Media | undefined = content[String(headers['content-type']).split(';')[0]!]
    assert.ok(media, where)
    const validate = compile(media.schema)
    assert.ok(validate(body ?? text), `${where}: ${JSON.stringify(validate.errors)}`)
  }
}

/** Forbids unlisted members in an object schema. `JSON.parse` calls this function as its reviver. */
function close(_key: string, value: any): unknown {
  const isOpen = value?.type === 'object' && value.properties && value.additionalProperties === undefined
  return isOpen ? { ...value, additionalProperties: false } : value
}

export type Schema = {
  $ref?: string
  title?: string
  description?: string
  type?: string | string[]
  format?: string
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  anyOf?: Schema[]
  enum?: unknown[]
  const?: unknown
  default?: unknown
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  maxItems?: number
  pattern?: string
  examples?: unknown[]
}

export type Schemas = Record<string, Schema>

/** The keywords that src/http/validation.ts adds to JSON Schema. */
const INTERNAL = ['verbatim', 'check', 'rule', 'published']
const NESTED = ['items', 'anyOf', 'oneOf', 'allOf', 'not', 'additionalProperties']

/**
 * Returns a copy of the schema for the OpenAPI document, without the keywords in `INTERNAL`, but with the keywords in
 * `published`. Adds each object schema that has a title to `shared`. In the copy, a reference replaces each object
 * schema that has a title.
 * @throws Error if two different schemas have the same title
 */
export function publish(schema: Schema, shared: Schemas): Schema {
  // @fastify/swagger has replaced our `nullable` by the type null.
  if (schema.title && Array.isArray(schema.type) && schema.type.includes('object')) {
    return { anyOf: [publish({ ...schema, type: 'object' }, shared), { type: 'null' }] }
  }
  const plain = publishParts(schema, shared)
  if (!plain.title || plain.type !== 'object') return plain
  const known = shared[plain.title]
  if (known && JSON.stringify(known) !== JSON.stringify(plain)) {
    throw new Error(`two schemas have the title ${plain.title}`)
  }
  shared[plain.title] = plain
  return { $ref: `#/components/schemas/${plain.title}` }
}

function publishParts(schema: Schema, shared: Schemas): Schema {
  if (typeof schema !== 'object') return schema
  const plain: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(schema)) {
    if (INTERNAL.includes(key)) continue
    if (key === 'properties') {
      plain[key] = Object.fromEntries(
        Object.entries(value as Schemas).map(([name, property]) => [name, publish(property, shared)]),
      )
    } else if (NESTED.includes(key)) {
      plain[key] = Array.isArray(value) ? value.map(part => publish(part, shared)) : publish(value as Schema, shared)
    } else {
      plain[key] = value
    }
  }
  return { ...plain, ...(schema as { published?: object }).published }
}

/** Creates a value that the schema accepts, from the examples in the schema and its parts. */
export function makeExample(schema: Schema, shared: Schemas): unknown {
  if (schema.$ref) return makeExample(resolve(schema, shared), shared)
  const given = [schema.examples?.[0], schema.const, schema.default, schema.enum?.[0]].find(
    value => value !== undefined,
  )
  if (given !== undefined) return given
  if (schema.anyOf) return makeExample(schema.anyOf[0]!, shared)
  switch ([schema.type].flat()[0]) {
    case 'object':
      return Object.fromEntries(
        Object.entries(schema.properties ?? {}).map(([name, property]) => [name, makeExample(property, shared)]),
      )
    case 'array':
      return schema.items ? [makeExample(schema.items, shared)] : []
    case 'integer':
      return schema.minimum ?? 1
    case 'boolean':
      return true
    case 'string':
      return schema.format === 'date-time' ? '2026-01-17T14:30:00+00:00' : 'text'
    default:
      return null
  }
}

/** If the schema is a reference, returns the schema that it points to. Otherwise returns the schema unchanged. */
export function resolve(schema: Schema, shared: Schemas): Schema {
  return schema.$ref ? shared[schema.$ref.slice('#/components/schemas/'.length)]! : schema
}

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

/** What src/http/validation.ts reads beyond JSON Schema. */
const INTERNAL = ['verbatim', 'rule']
const NESTED = ['items', 'anyOf', 'oneOf', 'allOf', 'not', 'additionalProperties']

/**
 * The schema as the document shows it: without our internal keywords, and with a reference in the place of each object that
 * has a `title`, which is added to `shared` under it.
 * @throws Error when two different schemas have one title
 */
export function publish(schema: Schema, shared: Schemas): Schema {
  const plain = publishParts(schema, shared)
  if (!plain.title || plain.type !== 'object') return plain
  const known = shared[plain.title]
  if (known && JSON.stringify(known) !== JSON.stringify(plain)) throw new Error(`two schemas are titled ${plain.title}`)
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
  return plain
}

/** A value that the schema describes, made of the examples its parts give. */
export function exampleOf(schema: Schema, shared: Schemas): unknown {
  if (schema.$ref) return exampleOf(resolve(schema, shared), shared)
  const given = [schema.examples?.[0], schema.const, schema.default, schema.enum?.[0]].find(
    value => value !== undefined,
  )
  if (given !== undefined) return given
  if (schema.anyOf) return exampleOf(schema.anyOf[0]!, shared)
  switch ([schema.type].flat()[0]) {
    case 'object':
      return Object.fromEntries(
        Object.entries(schema.properties ?? {}).map(([name, property]) => [name, exampleOf(property, shared)]),
      )
    case 'array':
      return schema.items ? [exampleOf(schema.items, shared)] : []
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

/** What a reference stands for; any other schema is itself. */
export function resolve(schema: Schema, shared: Schemas): Schema {
  return schema.$ref ? shared[schema.$ref.slice('#/components/schemas/'.length)]! : schema
}

// npm --workspace client run types: writes src/api.ts, the types of every endpoint, from the OpenAPI document.
import { readFileSync, writeFileSync } from 'node:fs'

type Schema = Record<string, any>
type Document = { components: { schemas: Record<string, Schema> }; paths: Record<string, Record<string, Schema>> }

const DOCUMENT = new URL('../../docs/openapi.json', import.meta.url)
const TARGET = new URL('../src/api.ts', import.meta.url)

/**
 * The text of `src/api.ts`: a type for each schema of the document, and the map of its endpoints. Only what this
 * service's document uses is known. @throws Error on anything else, rather than write a type that is wrong
 */
export function typesOf({ components, paths }: Document): string {
  const schemas = Object.entries(components.schemas).map(
    ([name, schema]) => `${comment(schema.description, '')}export type ${name} = ${typeOf(schema)}\n`,
  )
  const endpoints = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => endpoint(`${method.toUpperCase()} ${path}`, operation)),
  )
  return `// Generated from docs/openapi.json by client/scripts/types.ts; not to be edited.

${schemas.join('\n')}
/** What each endpoint takes and answers. */
export type Endpoints = {
${endpoints.join('')}}
`
}

function endpoint(name: string, operation: Schema): string {
  const parameters: Schema[] = operation.parameters ?? []
  const inside = (place: string) => {
    const fields = parameters.filter(parameter => parameter.in === place)
    return fields.length === 0
      ? 'undefined'
      : objectOf(fields.map(({ name, required, schema }) => [name, schema, required]))
  }
  const bodies: string[] = Object.values<Schema>(operation.requestBody?.content ?? {}).map(({ schema }) =>
    typeOf(schema),
  )
  const answers = Object.entries<Schema>(operation.responses)
    .filter(([status]) => status.startsWith('2'))
    .flatMap(([, { content }]) =>
      content['application/json'] ? typesIn(content['application/json'].schema) : ['string'],
    )
  const body = bodies.length === 0 ? 'undefined' : [...new Set(bodies)].join(' | ')
  return `${comment(operation.summary, '  ')}  '${name}': { path: ${inside('path')}; query: ${inside('query')}; \
body: ${body}; answer: ${[...new Set(answers)].join(' | ')} }\n`
}

/** Those of a union each by itself. */
function typesIn(schema: Schema): string[] {
  return schema.anyOf ? schema.anyOf.map(typeOf) : [typeOf(schema)]
}

function typeOf(schema: Schema): string {
  if (schema.$ref) return schema.$ref.split('/').at(-1)
  if (schema.anyOf) return typesIn(schema).join(' | ')
  if (schema.enum) return schema.enum.map((value: unknown) => quoted(value)).join(' | ')
  if ('const' in schema) return quoted(schema.const)
  switch (schema.type) {
    case 'string':
      return 'string'
    case 'integer':
    case 'number':
      return 'number'
    case 'boolean':
      return 'boolean'
    case 'null':
      return 'null'
    case 'array':
      return `Array<${typeOf(schema.items)}>`
    case 'object':
      return mapOrObject(schema)
    default:
      throw new Error(`this script knows no such schema: ${JSON.stringify(schema)}`)
  }
}

function mapOrObject({ properties = {}, required = [], additionalProperties }: Schema): string {
  const fields = Object.entries<Schema>(properties)
  if (fields.length > 0) return objectOf(fields.map(([name, schema]) => [name, schema, required.includes(name)]))
  return `Record<string, ${typeof additionalProperties === 'object' ? typeOf(additionalProperties) : 'unknown'}>`
}

function objectOf(fields: [name: string, schema: Schema, required: boolean][]): string {
  const texts = fields.map(([name, schema, required]) => `${name}${required ? '' : '?'}: ${typeOf(schema)}`)
  return `{ ${texts.join('; ')} }`
}

function quoted(value: unknown): string {
  return typeof value === 'string' ? `'${value}'` : JSON.stringify(value)
}

function comment(text: string | undefined, indent: string): string {
  return text ? `${indent}/** ${text.replaceAll('*/', '*\\/')} */\n` : ''
}

if (import.meta.main) writeFileSync(TARGET, typesOf(JSON.parse(readFileSync(DOCUMENT, 'utf8'))))

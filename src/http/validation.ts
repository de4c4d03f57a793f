import { createRequire } from 'node:module'
import type { Ajv, ErrorObject, ValidateFunction } from 'ajv'
import type { TSchema } from 'typebox'
import { type AppError, type Fields, invalid, notFound } from '../errors.ts'
import type { Text } from '../language.ts'
import { NOT_AN_OBJECT } from './body.ts'
import { trim } from './format/plain-text.ts'
import { canonicalInstant } from './format/timestamp.ts'

/**
 * Our additions to JSON Schema:
 * - If `verbatim` is set, the string is not trimmed.
 * - `check` returns whether a string follows the rules that the schema cannot express.
 * - `published` contains keywords for the OpenAPI document. They describe rules that other code checks.
 * - `rule` is the error message for a value that has the correct type but breaks another rule of its schema.
 *
 * `nullable` is a keyword of Ajv. It means that null is a value, and does not count as absent.
 */
declare module 'typebox' {
  interface TSchemaOptions {
    verbatim?: boolean
    check?: (text: string) => boolean
    published?: object
    rule?: Text
  }
}

type Schema = {
  type?: string
  properties?: Record<string, Schema>
  additionalProperties?: boolean | Schema
  nullable?: boolean
  items?: Schema
  maxItems?: number
  check?(text: string): boolean
  verbatim?: boolean
  rule?: Text
  title?: string
}

type Part = 'body' | 'querystring' | 'params' | 'headers'

let ajv: Ajv | undefined

/**
 * Compiles a schema, and loads Ajv at the first call. If the service loaded Ajv and compiled all schemas at startup,
 * this work would take a third of the startup time. So call `compile` only when a schema is used for the first time.
 */
function compile(schema: TSchema): ValidateFunction {
  ajv ??= createAjv()
  return ajv.compile(schema)
}

function createAjv(): Ajv {
  const library: typeof import('ajv') = createRequire(import.meta.url)('ajv')
  return new library.Ajv({
    allErrors: true,
    strict: false,
    useDefaults: true,
    verbose: true,
    formats: { 'date-time': text => canonicalInstant(text) !== undefined },
    keywords: [
      {
        keyword: 'check',
        type: 'string',
        validate: (check: NonNullable<Schema['check']>, text: string) => check(text),
      },
    ],
  })
}

/**
 * Creates the validator of a route for Fastify. The validator normalizes the input and then checks it. For an invalid
 * path parameter it returns a 404, and for any other invalid input a 422 that names the fields.
 */
export function compileValidator({ schema, httpPart }: { schema: unknown; httpPart?: string | undefined }) {
  let check: ValidateFunction | undefined
  const part = httpPart as Part
  return (input: unknown): { value: unknown } | { error: AppError } => {
    check ??= compile(schema as TSchema)
    const value = normalize(schema as Schema, input ?? (part === 'body' ? undefined : {}), part)
    if (check(value)) return { value }
    if (part === 'params') return { error: notFound() }
    return { error: invalid(describeFields(check.errors ?? [])) }
  }
}

/** Creates a function that normalizes and checks a single value, such as an item of a list. */
export function compileCheck<T>(schema: TSchema): (input: unknown) => { value: T } | { fields: Fields } {
  let check: ValidateFunction | undefined
  return input => {
    check ??= compile(schema)
    const value = normalize(schema as Schema, input, 'body')
    return check(value) ? { value: value as T } : { fields: describeFields(check.errors ?? []) }
  }
}

/**
 * Normalizes input before it is checked against its schema:
 * - Copies only the members that the schema names. All other members, such as `__proto__`, are dropped. If the schema
 *   forbids other members, one of them stays, and the check of the schema reports it.
 * - Treats `null` as absent, unless the schema is nullable.
 * - Trims spaces and tabs from strings. Treats a string that is empty after the trimming as absent.
 * - Converts the digits of an integer in a query or a path to a number.
 */
function normalize(schema: Schema, input: unknown, part: Part): unknown {
  if (input === null) return schema.nullable ? null : undefined
  if (schema.type === 'object' && schema.properties) {
    if (input === undefined && part === 'body') return {}
    if (typeof input !== 'object' || Array.isArray(input)) return input
    return copyMembers(schema, input as Record<string, unknown>, part)
  }
  if (schema.type === 'array' && schema.items && Array.isArray(input)) {
    // A null in a list stays, and the check of the schema reports it as invalid. If the null were dropped, the later
    // items would change their positions, and the error messages would name wrong positions. If a list has more than
    // `maxItems` items, we keep `maxItems` + 1 items and drop the rest. The shortened list is still too long, so the
    // check rejects it. But the check spends no time on the dropped items.
    const items = input.slice(0, (schema.maxItems ?? input.length) + 1)
    return items.map(item => (item === null ? null : normalize(schema.items!, item, part)))
  }
  if (typeof input !== 'string') return input
  if (schema.type === 'integer' && part !== 'body') return parseInteger(input)
  const text = schema.verbatim ? input : trim(input)
  return text === '' ? undefined : text
}

function copyMembers(schema: Schema, input: Record<string, unknown>, part: Part): Record<string, unknown> {
  const properties = schema.properties ?? {}
  const members = Object.entries(properties)
    .filter(([key]) => Object.hasOwn(input, key))
    .map(([key, property]) => [key, normalize(property, input[key], part)] as const)
    .filter(([, value]) => value !== undefined)
  const other =
    schema.additionalProperties === false ? Object.keys(input).find(key => !Object.hasOwn(properties, key)) : undefined
  // `fromEntries` creates the member `__proto__` like any other member. An assignment would set the prototype.
  return Object.fromEntries(other === undefined ? members : [...members, [other, input[other]]])
}

function parseInteger(text: string): number | string | undefined {
  if (text === '') return undefined
  return /^(0|[1-9]\d{0,15})$/.test(text) ? Number(text) : text
}

function describeFields(errors: ErrorObject[]): Fields {
  const fields: Fields = {}
  for (const error of errors) {
    const path = error.instancePath.slice(1).replaceAll('/', '.')
    const member = error.params.missingProperty ?? error.params.additionalProperty
    const name = [path, member].filter(Boolean).join('.') || 'body'
    fields[name] ??= []
    const text = describeError(error, name)
    if (!fields[name].some(known => known.en === text.en)) fields[name].push(text)
  }
  return fields
}

function describeError({ keyword, params, parentSchema }: ErrorObject, name: string): Text {
  const { rule } = (parentSchema ?? {}) as Schema
  if (rule && keyword !== 'required' && keyword !== 'type') return rule
  if (keyword === 'type' && params.type === 'object' && name === 'body') return NOT_AN_OBJECT
  const [fr, en] = keyword === 'type' ? (TYPES[params.type] ?? WRONG) : describeKeyword(keyword, params.limit)
  return { fr: `Le champ ${name} ${fr}.`, en: `The ${name} field ${en}.` }
}

/**
 * Returns the part of an error message that follows the name of the field.
 * @param limit the limit that the schema sets with the keyword, such as 120 for `maxLength: 120`. Keywords without a
 *   limit, such as `required`, ignore this argument
 */
function describeKeyword(keyword: string, limit: number): Predicate {
  switch (keyword) {
    case 'required':
      return ['est obligatoire', 'is required']
    case 'maxLength':
      return [`dépasse ${limit} caractères`, `is longer than ${limit} characters`]
    case 'minimum':
      return [`doit être au moins ${limit}`, `must be at least ${limit}`]
    case 'maximum':
      return [`doit être au plus ${limit}`, `must be at most ${limit}`]
    case 'maxItems':
      return [`a plus de ${limit} éléments`, `has more than ${limit} items`]
    case 'additionalProperties':
      return ['est inconnu', 'is unknown']
    case 'uniqueItems':
      return ['contient deux fois le même élément', 'has the same item twice']
    default:
      return WRONG
  }
}

type Predicate = readonly [fr: string, en: string]

const WRONG: Predicate = ['n’est pas valide', 'is not valid']

const TYPES: Record<string, Predicate> = {
  string: ['doit être un texte', 'must be a string'],
  integer: ['doit être un entier', 'must be an integer'],
  boolean: ['doit être un booléen', 'must be a boolean'],
  array: ['doit être une liste', 'must be an array'],
  object: ['doit être un objet', 'must be an object'],
}

import type { TNull, TSchema, TUnion, Type as TypeBox } from 'typebox'

type Names =
  | 'Array'
  | 'Boolean'
  | 'Enum'
  | 'Integer'
  | 'Literal'
  | 'Null'
  | 'Object'
  | 'Optional'
  | 'Record'
  | 'String'
  | 'Union'
type Schema = Record<string, unknown>

const optional = new WeakSet<Schema>()

function object(properties: Record<string, Schema>, options?: Schema): Schema {
  const required = Object.keys(properties).filter(name => !optional.has(properties[name]!))
  return { type: 'object', ...(required.length > 0 && { required }), properties, ...options }
}

/**
 * Our versions of the TypeBox functions that this project uses, with TypeBox's types. At run time, these functions only
 * build JSON Schema. TypeBox itself has some 370 files, which the process would read at every startup (decisions.md,
 * "words for schemas"). A test compares each function with TypeBox's function of the same name.
 */
export const Type = {
  Array: (items: Schema, options?: Schema) => ({ type: 'array', items, ...options }),
  Boolean: (options?: Schema) => ({ type: 'boolean', ...options }),
  Enum: (values: unknown[], options?: Schema) => ({ enum: values, ...options }),
  Integer: (options?: Schema) => ({ type: 'integer', ...options }),
  Literal: (value: unknown, options?: Schema) => ({ type: typeof value, const: value, ...options }),
  Null: (options?: Schema) => ({ type: 'null', ...options }),
  Object: object,
  Optional(schema: Schema) {
    const copy = { ...schema }
    optional.add(copy)
    return copy
  },
  /** Accepts every string as a member name, as TypeBox does for `Type.String()`. */
  Record: (_key: Schema, value: Schema, options?: Schema) => ({
    type: 'object',
    patternProperties: { '^.*$': value },
    ...options,
  }),
  String: (options?: Schema) => ({ type: 'string', ...options }),
  Union: (parts: Schema[], options?: Schema) => ({ anyOf: parts, ...options }),
} as unknown as Pick<typeof TypeBox, Names>

/** Returns a schema that also accepts null. With other schemas, the validation treats null as absent. */
export function nullable<T extends TSchema>(schema: T): TUnion<[T, TNull]> {
  return { ...schema, nullable: true } as unknown as TUnion<[T, TNull]>
}

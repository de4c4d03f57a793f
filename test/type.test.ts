import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Type as TypeBox } from 'typebox'
import { Type } from '../src/http/type.ts'

type Functions = typeof Type

const options = { description: 'what it is', examples: ['one'], rule: { fr: 'non', en: 'no' } }

// These schemas use each function with and without options, inside other types, and with required and optional members.
const schemas: Record<string, (type: Functions) => object[]> = {
  Array: type => [type.Array(type.Integer()), type.Array(type.String(), { maxItems: 3, ...options })],
  Boolean: type => [type.Boolean(), type.Boolean(options)],
  Enum: type => [type.Enum(['a', 'b']), type.Enum(['a', 'b'], options)],
  Integer: type => [type.Integer(), type.Integer({ minimum: 1, ...options })],
  Literal: type => [type.Literal('a'), type.Literal(1), type.Literal(true), type.Literal('a', options)],
  Null: type => [type.Null(), type.Null(options)],
  Object: type => {
    const shared = type.String()
    return [
      type.Object({}),
      type.Object({}, { additionalProperties: true }),
      type.Object({ a: type.Optional(shared), b: shared, c: type.Null() }, options),
      type.Object({ a: type.Optional(shared) }),
    ]
  },
  Optional: type => [type.Optional(type.Integer(options))],
  Record: type => [type.Record(type.String(), type.Integer()), type.Record(type.String(), type.Null(), options)],
  String: type => [type.String(), type.String({ minLength: 1, ...options })],
  Union: type => [type.Union([type.Null(), type.Object({ a: type.Boolean() })]), type.Union([type.Null()], options)],
}

for (const word of Object.keys(Type)) {
  test(`Type.${word} builds the same schema as TypeBox`, () => {
    const [ours, theirs] = [Type, TypeBox].map(type => schemas[word]!(type))
    // The schemas are compared as text, because the order of their members appears in the OpenAPI document.
    assert.equal(JSON.stringify(ours), JSON.stringify(theirs))
  })
}

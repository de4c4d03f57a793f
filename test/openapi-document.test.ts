import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { suite, test } from 'node:test'
import { Validator } from '@seriousme/openapi-schema-validator'
import { describe } from '../src/cli/openapi.ts'
import { CODES } from '../src/errors.ts'
import type { Media } from '../src/http/openapi/document.ts'
import { listOperations, schemaCompiler } from './support/documented.ts'
import { ENDPOINTS } from './support/endpoints.ts'
import { GOOD_REQUESTS } from './support/good-requests.ts'

const document = await describe()
const operations = listOperations(document)

suite('the OpenAPI document', () => {
  test('docs/openapi.json equals the document that the code generates', async () => {
    const kept = await readFile(new URL('../docs/openapi.json', import.meta.url), 'utf8')
    assert.deepEqual(
      JSON.parse(kept),
      JSON.parse(JSON.stringify(document)),
      'regenerate docs/openapi.json: npm run --silent courtside -- openapi > docs/openapi.json',
    )
  })

  test('the generated document is valid OpenAPI 3.1', async () => {
    const { valid, errors } = await new Validator().validate(JSON.parse(JSON.stringify(document)))
    assert.ok(valid, JSON.stringify(errors, null, 2))
    assert.match(document.openapi, /^3\.1\./)
  })

  test('the document lists every endpoint of the specification, and the same operations as GOOD_REQUESTS', () => {
    const listed = operations.map(({ method, path }) => `${method} ${path}`)
    for (const [method, path] of ENDPOINTS) assert.ok(listed.includes(`${method} ${path}`), path)
    assert.deepEqual(listed.sort(), Object.keys(GOOD_REQUESTS).sort())
  })

  test('every operation has a unique camelCase name, a tag and a summary', () => {
    const names = operations.map(({ operation }) => operation.operationId)
    assert.equal(new Set(names).size, names.length)
    for (const { operation } of operations) {
      assert.match(operation.operationId, /^[a-z][A-Za-z]+$/)
      assert.ok(operation.tags.length > 0 && operation.summary, operation.operationId)
    }
  })

  test('the document contains no internal keyword, and no reference to a missing schema', () => {
    const text = JSON.stringify(document)
    assert.doesNotMatch(text, /"(verbatim|rule|published|x-throttled)":/)
    const references = [...text.matchAll(/"#\/components\/(schemas|responses)\/(\w+)"/g)]
    assert.ok(references.length > 50)
    for (const [, kind, name] of references) assert.ok(name! in document.components[kind as 'schemas'], name)
    assert.deepEqual(document.components.schemas.Error!.properties!.code!.enum, [...CODES])
  })

  test('the document describes each tag, and has no component and no tag that no operation uses', () => {
    const { tags } = document as unknown as { tags: { name: string; description: string }[] }
    const used = new Set(operations.flatMap(({ operation }) => operation.tags))
    assert.deepEqual(tags.map(({ name }) => name).sort(), [...used].sort())
    for (const { name, description } of tags) assert.ok(description.length > 10, name)
    const text = JSON.stringify(document)
    for (const kind of ['schemas', 'responses'] as const) {
      for (const name of Object.keys(document.components[kind])) {
        assert.ok(text.includes(`"#/components/${kind}/${name}"`), name)
      }
    }
  })

  test('every example in the OpenAPI document matches its schema', () => {
    const compile = schemaCompiler(document, { closed: false })
    const medias = listMedias()
    assert.ok(medias.length > 25)
    for (const [type, { schema, example, examples }] of medias) {
      const values = examples ? Object.values(examples).map(({ value }) => value) : [example]
      assert.ok(values.length > 0)
      for (const value of values) assert.ok(compile(schema)(value), `${type}: ${JSON.stringify(value)}`)
    }
  })
})

function listMedias(): [string, Media][] {
  const responses = Object.values(document.components.responses)
  const bodies = operations.flatMap(({ operation }) => [operation.requestBody, ...Object.values(operation.responses)])
  return [...responses, ...bodies].flatMap(part => Object.entries(part?.content ?? {}))
}

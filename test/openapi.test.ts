import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { suite, test } from 'node:test'
import { Validator } from '@seriousme/openapi-schema-validator'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe } from '../src/cli/openapi.ts'
import { CODES } from '../src/errors.ts'
import type { Media, Operation } from '../src/http/openapi/document.ts'
import { harness, INTAKE_KEY } from './support/app.ts'

const h = harness()
const document = await describe()
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
)

suite('the document', () => {
  test('docs/openapi.json is current', async () => {
    const kept = await readFile(new URL('../docs/openapi.json', import.meta.url), 'utf8')
    assert.deepEqual(
      JSON.parse(kept),
      JSON.parse(JSON.stringify(document)),
      'mend it by: npm run --silent courtside -- openapi > docs/openapi.json',
    )
  })

  test('is valid OpenAPI 3.1', async () => {
    const { valid, errors } = await new Validator().validate(JSON.parse(JSON.stringify(document)))
    assert.ok(valid, JSON.stringify(errors, null, 2))
    assert.match(document.openapi, /^3\.1\./)
  })

  test('names every operation once, in camelCase, with a tag and a summary', () => {
    const names = operations.map(({ operation }) => operation.operationId)
    assert.equal(new Set(names).size, names.length)
    for (const { operation } of operations) {
      assert.match(operation.operationId, /^[a-z][A-Za-z]+$/)
      assert.ok(operation.tags.length > 0 && operation.summary, operation.operationId)
    }
  })

  test('holds the endpoints of the specification, and of ours only those for programs', () => {
    const specified = [
      'POST /api/v1/auth/request-otp',
      'POST /api/v1/auth/verify-otp',
      'POST /api/v1/auth/refresh',
      'POST /api/v1/auth/logout',
      'GET /api/v1/auth/me',
      'POST /api/v1/auth/level-assessment',
      'GET /api/v1/game-levels',
    ]
    const held = operations.map(({ method, path }) => `${method} ${path}`)
    for (const line of specified) assert.ok(held.includes(line), line)
    for (const line of held) assert.match(line, / \/(api|internal)\/v1\/(?!openapi)/)
  })

  test('says nothing of how we validate, and leaves no reference open', () => {
    const text = JSON.stringify(document)
    assert.doesNotMatch(text, /"(verbatim|rule|x-throttled)":/)
    for (const [, kind, name] of text.matchAll(/"#\/components\/(schemas|responses)\/(\w+)"/g)) {
      assert.ok(name! in document.components[kind as 'schemas' | 'responses'], name)
    }
    assert.deepEqual(document.components.schemas.Error!.properties!.code!.enum, [...CODES])
  })

  test('gives examples that its own schemas accept', () => {
    const ajv = new Ajv2020({ strict: false, validateFormats: false })
    ajv.addSchema({ $id: 'document', components: document.components })
    for (const [where, { schema, example, examples }] of medias()) {
      const check = ajv.compile(JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"document#/')))
      const values = examples ? Object.values(examples).map(({ value }) => value) : [example]
      for (const value of values) assert.ok(check(value), `${where}: ${ajv.errorsText(check.errors)}`)
    }
  })
})

suite('what is documented is what is answered', () => {
  test('who may call: without a token exactly the operations with a 401 answer 401', async () => {
    for (const { method, path, operation } of operations) {
      const { status } = await h.call(method, path.replaceAll(/\{\w+\}/g, '1'))
      assert.equal(status === 401, '401' in operation.responses, `${method} ${path}: ${status}`)
      assert.ok(String(status) in operation.responses, `${method} ${path}: ${status} is not documented`)
    }
  })

  test('bodies: 413, 415 and 422 where they are documented', async () => {
    for (const { method, path, operation } of operations.filter(({ operation }) => '415' in operation.responses)) {
      const headers =
        'intakeKey' in (operation.security[0] ?? {}) ? { authorization: `Bearer ${INTAKE_KEY}` } : undefined
      if (!headers && '401' in operation.responses) continue
      for (const [body, type, expected] of [
        ['x'.repeat(2 ** 20 + 1), 'application/json', 413],
        ['{}', 'text/plain', 415],
        ['[', 'application/json', 422],
      ] as const) {
        const { status } = await h.call(method, path, { body, headers: { ...headers, 'content-type': type } })
        assert.equal(status, expected, `${method} ${path}`)
        assert.ok(String(expected) in operation.responses)
      }
    }
  })

  test('throttled routes carry the documented headers, the others none', async () => {
    for (const { method, path, operation } of operations) {
      const { headers } = await h.call(method, path.replaceAll(/\{\w+\}/g, '1'))
      const documented = '429' in operation.responses
      assert.equal('x-ratelimit-limit' in headers, documented, path)
      if (!documented) continue
      for (const name of Object.keys(operation.responses[200]!.headers!)) assert.ok(name.toLowerCase() in headers, name)
    }
  })
})

suite('GET /api/v1/openapi.json', () => {
  test('200: the document, for everybody, to be checked before each use', async () => {
    const { status, headers, body } = await h.call('GET', '/api/v1/openapi.json')
    assert.equal(status, 200)
    assert.equal(headers['cache-control'], 'no-cache')
    assert.deepEqual(body, JSON.parse(JSON.stringify(document)))
  })

  test('304: for the copy that is current', async () => {
    const { headers } = await h.call('GET', '/api/v1/openapi.json')
    const again = await h.call('GET', '/api/v1/openapi.json', { headers: { 'if-none-match': headers.etag! } })
    assert.equal(again.status, 304)
  })
})

suite('GET /docs', () => {
  test('200: a page with every operation, without a script and with nothing from elsewhere', async () => {
    const { status, headers, text } = await h.call('GET', '/docs')
    assert.equal(status, 200)
    assert.match(headers['content-type']!, /^text\/html/)
    assert.match(headers['content-security-policy']!, /^default-src 'none'; style-src 'sha256-[^']+'; /)
    for (const { path, operation } of operations) {
      assert.ok(text.includes(`id="${operation.operationId}"`), operation.operationId)
      assert.ok(text.includes(`<code>${path}</code>`), path)
    }
    assert.doesNotMatch(text, /<script|(src|href)="(https?:)?\/\/|url\(|@import/)
    assert.doesNotMatch(text, /undefined|\[object/)
  })

  test('every link within the page leads somewhere', async () => {
    const { text } = await h.call('GET', '/docs')
    for (const [, id] of text.matchAll(/href="#(\w+)"/g)) assert.ok(text.includes(`id="${id}"`), id)
  })
})

function medias(): [string, Media][] {
  const responses = Object.values(document.components.responses)
  const bodies = operations.flatMap(({ operation }: { operation: Operation }) => [
    operation.requestBody,
    ...Object.values(operation.responses),
  ])
  return [...responses, ...bodies].flatMap(part => Object.entries(part?.content ?? {}))
}

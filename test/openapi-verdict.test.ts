import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import fc from 'fast-check'
import { describe as describeApi } from '../src/cli/openapi.ts'
import { harness, INTAKE_KEY } from './support/app.ts'
import { type ListedOperation, listOperations } from './support/documented.ts'
import { makeUser } from './support/factories.ts'
import { cloudEvent, newGameId } from './support/games.ts'
import { newSubscription, PUBLIC_KEY } from './support/push.ts'
import { newEmail, profile } from './support/scenario.ts'

const h = harness()
let token: string

const document = await describeApi()
const operations = listOperations(document)

const GUEST = 2 ** 52

/** One changed value in a good request. An undefined `value` stands for a value that was removed. */
type Mutation = { operation: string; path: string; value: unknown }

const isBlank = (value: unknown) => typeof value === 'string' && value.trim() === ''

/** The requests that the document and the service judge differently, and why. */
const DIFFERENCES: { reason: string; matches(mutation: Mutation): boolean; example?: Mutation }[] = [
  {
    reason: 'null counts as absent, and clients send all fields of a form',
    matches: ({ value }) => value === null,
    example: { operation: 'reportEvents', path: 'data.place', value: null },
  },
  {
    reason: 'a blank text counts as absent, for the same reason',
    matches: ({ value, path }) => isBlank(value) && path !== '',
    example: { operation: 'reportEvents', path: 'data.place', value: ' ' },
  },
  {
    reason: 'the service trims texts, and the document can describe only trimmed ones',
    matches: ({ value }) => typeof value === 'string' && value !== value.trim(),
    example: { operation: 'reportEvents', path: 'type', value: ' game_updated' },
  },
  {
    reason: 'names have rules that need tables of characters. Their description says so',
    matches: ({ path }) => path.endsWith('_name'),
    example: { operation: 'requestOtp', path: 'first_name', value: '42' },
  },
  {
    reason: 'an address may have an internationalized domain, and its domain needs a dot',
    matches: ({ path }) => path === 'email',
    example: { operation: 'requestOtp', path: 'email', value: 'zoe@exämple.example' },
  },
  {
    reason: 'only the service knows which levels exist',
    matches: ({ path, value }) => path === 'game_level_id' && Number.isInteger(value),
    example: { operation: 'assessLevel', path: 'game_level_id', value: 999 },
  },
  {
    reason: 'only the service knows which time zones exist',
    matches: ({ path, value }) => path === 'time_zone' && typeof value === 'string',
    example: { operation: 'updateNotificationPreferences', path: 'time_zone', value: 'Mars/Olympus' },
  },
  {
    reason: 'only the service knows its keys and the push services that it calls',
    matches: ({ operation, path }) => operation === 'putPushSubscription' && ['endpoint', 'public_key'].includes(path),
    example: { operation: 'putPushSubscription', path: 'endpoint', value: 'https://push.example/x' },
  },
  {
    reason: 'a query is text: numbers have one spelling, and an empty value counts as absent',
    matches: ({ operation, value }) =>
      operation === 'listNotifications' && ['', '01', '1.0', '+1'].includes(value as string),
  },
  {
    reason: 'OpenAPI cannot say that two parameters exclude each other. Their description says so',
    matches: ({ operation, path }) => operation === 'listNotifications' && path === 'page and before_id',
  },
  {
    reason: 'a format cannot say which days and hours a calendar has, and which years the service stores',
    matches: ({ value }) => typeof value === 'string' && /^\d{4,5}-\d\d/.test(value),
    example: { operation: 'reportEvents', path: 'data.starts_at', value: '0000-06-01T00:00:00Z' },
  },
]

const ODD_VALUES = [
  ...[
    null,
    true,
    false,
    0,
    1,
    -1,
    1.5,
    7,
    101,
    999,
    2 ** 53,
    2 ** 53 - 1,
    '',
    ' ',
    'a',
    ' a ',
    'a@b',
    'a@b.example',
    '42',
    '0042',
  ],
  ...[
    'a\nb',
    'x'.repeat(300),
    'été@exämple.com',
    'game_joined',
    'score_submitted',
    'game_exploded',
    ' game_updated',
    'zoe@exämple.example',
    '0000-06-01T00:00:00Z',
    '1.0',
    '0.3',
  ],
  ...['2026-11-28T09:00:00Z', '2026-11-28', '2026-02-30T09:00:00Z', '2026-11-28T09:00:00', '10000-01-01T00:00:00Z'],
  ...['2016-12-31T23:59:60Z', '2026-11-28T09:00:00+01:00', 'soon', '\u{1f3be}', 'L\u2028L', 'http://x'],
  ...[[], [1], [1, 1], [1, 2, 3, 4, 5], ['1'], [null], [[]], {}, { sets: '6-4' }, { id: 0, sets: '6-4' }, { x: 1 }],
]

/** Lists the paths of all members and items of a value, and the empty path. */
function listPaths(value: unknown, path: string[] = []): string[][] {
  if (typeof value !== 'object' || value === null) return [path]
  return [path, ...Object.entries(value).flatMap(([key, item]) => listPaths(item, [...path, key]))]
}

/** Returns a copy of a value in which the value at the path is replaced or removed. */
function replace(value: any, [key, ...rest]: string[], odd: unknown): unknown {
  if (key === undefined) return odd
  const copy = Array.isArray(value) ? [...value] : { ...value }
  if (rest.length === 0 && odd === undefined) {
    if (Array.isArray(copy)) copy.splice(Number(key), 1)
    else delete copy[key]
  } else copy[key] = replace(copy[key], rest, odd)
  return copy
}

const EVENT_TYPES = document.components.schemas.CloudEvent!.properties!.type!.enum as string[]

/** Good bodies, by operation. Each call returns a new address or a new event. */
const GOOD_BODIES: Record<string, (() => unknown)[]> = {
  requestOtp: [() => profile(newEmail()), () => ({ email: newEmail() })],
  verifyOtp: [() => ({ email: newEmail(), code: '0427' })],
  deleteMe: [() => ({ code: '0427' })],
  assessLevel: [() => ({ game_level_id: 4 })],
  readAllNotifications: [() => ({ ids: [1, 2] }), () => ({})],
  updateNotificationPreferences: [
    () => ({
      types: { game_joined: { push: false, label: 'Un joueur rejoint votre partie' } },
      email_paused: true,
      quiet_hours: { enabled: true, from: '21:30' },
      time_zone: 'Asia/Tokyo',
    }),
  ],
  putPushSubscription: [() => ({ ...newSubscription(), public_key: PUBLIC_KEY, time_zone: 'Europe/Paris' })],
  deletePushSubscription: [() => ({ endpoint: newSubscription().endpoint })],
  reportEvents: EVENT_TYPES.map(type => () => {
    // The service ignores the score of a game event, and the document describes it.
    const score = type.startsWith('score_') && { score: { id: 3, sets: '6-4 6-3' } }
    const state = { game_id: newGameId(), creator_id: GUEST, player_ids: [GUEST, GUEST + 1], actor_id: GUEST }
    return cloudEvent(type, { ...state, by_id: GUEST, ...score, place: 'Court 2' })
  }),
}

const ajv = new Ajv2020({ strict: false })
formats.default(ajv as never)
ajv.addSchema({ $id: 'document', components: JSON.parse(JSON.stringify(document.components)) })
const compiled = new Map<string, ValidateFunction>()

function accepts({ operation: { operationId } }: ListedOperation, schema: object, value: unknown): boolean {
  const text = JSON.stringify(schema).replaceAll('"#/', '"document#/')
  const validate = compiled.get(operationId + text) ?? ajv.compile(JSON.parse(text))
  compiled.set(operationId + text, validate)
  return validate(value)
}

/** Returns whether the service refuses a request because of its form, and not because of a code or a state. */
function isRefused({ status, body }: { status: number; body: any }): boolean {
  assert.ok(status < 500, `${status} ${JSON.stringify(body)}`)
  return status === 422 && body.code === 'validation_failed'
}

/** Sends a body to an operation. @returns the verdicts of the document and of the service */
async function judge(listed: ListedOperation, body: unknown) {
  const isEvent = listed.operation.operationId === 'reportEvents'
  const type = isEvent ? 'application/cloudevents+json' : 'application/json'
  const sent = body === undefined ? {} : { body: JSON.stringify(body) }
  const headers = { 'content-type': type }
  const answer = await h.call(listed.method, listed.path, { token: isEvent ? INTAKE_KEY : token, headers, ...sent })
  // A missing body counts as an empty object.
  const documented = accepts(
    listed,
    listed.operation.requestBody!.content[type]!.schema,
    body === undefined ? {} : body,
  )
  return { documented, accepted: !isRefused(answer), text: answer.text }
}

const used = new Set<string>()

/** Fails if the verdicts differ, unless the table of differences has a reason. */
function compare(mutation: Mutation, documented: boolean, accepted: boolean, text: string): void {
  if (documented === accepted) return
  const difference = DIFFERENCES.find(({ matches }) => matches(mutation))
  const verdict = documented ? 'accepts, and the service refuses' : 'refuses, and the service accepts'
  assert.ok(difference, `the document ${verdict} ${JSON.stringify(mutation)}: ${text}`)
  used.add(difference.reason)
}

describe('the verdict of the OpenAPI document', { timeout: 300_000 }, () => {
  before(async () => {
    token = (await makeUser(h)).token
  })
  const listed = operations.filter(({ operation }) => operation.requestBody && operation.operationId !== 'logout')

  test('GOOD_BODIES has an entry for each operation that refuses bodies', () => {
    assert.deepEqual(listed.map(({ operation }) => operation.operationId).sort(), Object.keys(GOOD_BODIES).sort())
  })

  async function check(operation: ListedOperation, makeBody: () => unknown, nth: number, value: unknown) {
    const good = makeBody()
    const path = listPaths(good)[nth]!
    const { documented, accepted, text } = await judge(operation, replace(good, path, value))
    compare({ operation: operation.operation.operationId, path: path.join('.'), value }, documented, accepted, text)
  }

  test('bodies with each odd value in each place get the verdict of the document, apart from the listed differences', async () => {
    for (const operation of listed) {
      const name = operation.operation.operationId
      // Events have too many places and types for all odd values, so only the removal of each member is tried.
      const values = name === 'reportEvents' ? [undefined] : [undefined, ...ODD_VALUES]
      for (const makeBody of GOOD_BODIES[name]!) {
        for (const nth of listPaths(makeBody()).keys()) {
          for (const value of values) await check(operation, makeBody, nth, value)
        }
      }
    }
  })

  test('1,000 mutated events get the verdict of the document, apart from the listed differences', async () => {
    const operation = listed.find(({ operation: { operationId } }) => operationId === 'reportEvents')!
    const mutated = fc.constantFrom(...GOOD_BODIES.reportEvents!).chain(makeBody =>
      fc.record({
        makeBody: fc.constant(makeBody),
        nth: fc.nat(listPaths(makeBody()).length - 1),
        value: fc.constantFrom<unknown>(undefined, ...ODD_VALUES),
      }),
    )
    await fc.assert(
      fc.asyncProperty(mutated, ({ makeBody, nth, value }) => check(operation, makeBody, nth, value)),
      { numRuns: 1_000 },
    )
  })

  test('mutated queries get the verdict of the document, apart from the listed differences', async () => {
    const list = operations.find(({ operation }) => operation.operationId === 'listNotifications')!
    const parameters = list.operation.parameters!.filter(parameter => parameter.in === 'query')
    const texts = [
      '',
      '0',
      '1',
      '01',
      '1.0',
      '+1',
      '-1',
      '1e1',
      '100',
      '101',
      'x',
      String(2 ** 53 - 1),
      String(2 ** 53),
    ]
    for (const { name, schema } of parameters) {
      for (const value of texts) {
        const answer = await h.call('GET', `${list.path}?${name}=${encodeURIComponent(value)}`, { token })
        const number = /^\d+(\.\d+)?$/.test(value) ? Number(value) : value
        compare(
          { operation: 'listNotifications', path: name, value },
          accepts(list, schema, number),
          !isRefused(answer),
          answer.text,
        )
      }
    }
    const both = await h.call('GET', `${list.path}?page=1&before_id=9`, { token })
    compare({ operation: 'listNotifications', path: 'page and before_id', value: 1 }, true, !isRefused(both), both.text)
  })

  test('each listed difference exists', async () => {
    for (const { example } of DIFFERENCES) {
      if (!example) continue
      const { operation: name, path, value } = example
      const operation = listed.find(({ operation: { operationId } }) => operationId === name)!
      const good = GOOD_BODIES[name]![0]!()
      const { documented, accepted, text } = await judge(operation, replace(good, path.split('.'), value))
      compare(example, documented, accepted, text)
    }
    const unused = DIFFERENCES.map(({ reason }) => reason).filter(reason => !used.has(reason))
    assert.deepEqual(unused, [])
  })
})

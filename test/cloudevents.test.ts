import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { CloudEvent, emitterFor, HTTP, httpTransport, Mode } from 'cloudevents'
import { harness, INTAKE_KEY } from './support/app.ts'
import { listen } from './support/event-stream.ts'
import { cloudEvent, EVENTS, makePlayer, newGameId, readNotifications, send, sendBatch } from './support/games.ts'

const h = harness()
let url: string

const GUEST = 2 ** 52

/** Returns the attributes and the data of an event that makes one notification, for the creator. */
async function joined(more: Record<string, unknown> = {}) {
  const creator_id = await makePlayer(h)
  const state = { game_id: newGameId(), creator_id, player_ids: [creator_id, GUEST], actor_id: GUEST }
  const event = cloudEvent('game_joined', {})
  return { ...event, data: { ...event.data, ...state, ...more } }
}

const toBytes = (data: unknown) => new TextEncoder().encode(JSON.stringify(data))

type Sent = { body: string; headers: Record<string, string> }

/** Sends an event with the emitter of the CloudEvents SDK. @returns the answer of the service */
async function emit(event: CloudEvent<unknown>, options?: { mode: Mode }): Promise<any> {
  const emitEvent = emitterFor(httpTransport(url), options as never)
  const { body } = (await emitEvent(event, { headers: { authorization: `Bearer ${INTAKE_KEY}` } })) as Sent
  return JSON.parse(body)
}

/** Returns the headers and the body of an event in the binary mode. */
function toBinary({ data, ...attributes }: Record<string, unknown>, more: Record<string, string | string[]> = {}) {
  const headers = Object.fromEntries(Object.entries(attributes).map(([name, value]) => [`ce-${name}`, String(value)]))
  return [data, { 'content-type': 'application/json', ...headers, ...more } as Record<string, string>] as const
}

describe('the CloudEvents SDK as the producer', () => {
  before(async () => {
    url = (await listen(h.app)) + EVENTS
  })

  test('an event is accepted in the binary mode, which is the default, and its structured form is a duplicate', async () => {
    const event = new CloudEvent(await joined({ place: 'Court 2' }))
    assert.deepEqual(await emit(event), { id: event.id, status: 'accepted', notifications: 1 })
    for (const options of [undefined, { mode: Mode.BINARY }, { mode: Mode.STRUCTURED }]) {
      assert.deepEqual(await emit(event, options), { id: event.id, status: 'duplicate', notifications: 1 })
    }
  })

  test('data as bytes is accepted in the binary and the structured mode, and the service stores the same event', async () => {
    const plain = await joined({ place: 'Court éè 🎾' })
    const event = new CloudEvent<unknown>({ ...plain, datacontenttype: 'application/json', data: toBytes(plain.data) })
    assert.match(String(HTTP.structured(event).body), /"data_base64":/)
    assert.deepEqual(await emit(event, { mode: Mode.STRUCTURED }), {
      id: event.id,
      status: 'accepted',
      notifications: 1,
    })
    assert.equal((await emit(event)).status, 'duplicate')
    assert.equal((await send(h, plain)).body.status, 'duplicate')
    assert.equal((await readNotifications(h, Number(plain.data.creator_id))).length, 1)
  })

  test('extensions and other attributes are ignored in the binary mode', async () => {
    const event = new CloudEvent({
      ...(await joined()),
      subject: 'game 12',
      dataschema: 'https://x.example/s',
      weather: 'é',
    })
    const { headers, body } = HTTP.binary(event)
    const more = { ...(headers as Record<string, string>), 'ce-weather': '%' }
    assert.equal((await send(h, body, more)).status, 202)
  })

  test('a batch of events with data and data_base64 is accepted', async () => {
    const [one, two, three] = [await joined(), await joined(), await joined()]
    const events = [new CloudEvent(one), new CloudEvent<unknown>({ ...two, data: toBytes(two.data) })]
    const broken = { ...three, data: undefined, data_base64: 'e30' }
    const { body } = await sendBatch(h, JSON.stringify([...events, broken]))
    assert.deepEqual(
      body.results.map(({ status }: { status: string }) => status),
      ['accepted', 'accepted', 'rejected'],
    )
    assert.deepEqual(Object.keys(body.results[2].errors), ['data_base64'])
  })
})

describe('the binary mode', () => {
  test('values are percent-decoded once, and quoted strings are unescaped before', async () => {
    const event = await joined()
    const values = { id: 'é "1"%41 \\', source: '/jeux/été' }
    const encoded = { 'ce-id': '%C3%A9 %221%22%2541 \\', 'ce-source': '/jeux/%c3%a9t%C3%A9' }
    const answer = await send(h, ...toBinary(event, encoded))
    assert.deepEqual(answer.body, { id: values.id, status: 'accepted', notifications: 1 })
    const quoted = { 'ce-id': '"%C3%A9 \\"1\\"%2541 \\\\"', 'ce-source': '"/jeux/%C3%A9t%C3%A9"' }
    assert.equal((await send(h, ...toBinary(event, quoted))).body.status, 'duplicate')
    assert.equal((await send(h, { ...event, ...values })).body.status, 'duplicate')
  })

  test('data may have any JSON media type, and other media types get a 415 that names application/json', async () => {
    for (const type of ['application/json; charset=utf-8', 'application/vnd.club+json', 'text/json']) {
      assert.equal((await send(h, ...toBinary(await joined(), { 'content-type': type }))).status, 202, type)
    }
    for (const type of ['text/plain', 'application/octet-stream', 'application/jsonp']) {
      const answer = await send(h, ...toBinary(await joined(), { 'content-type': type }))
      assert.equal(answer.status, 415)
      assert.match(answer.body.message, /application\/json/)
    }
  })

  test('a request with the media type of a whole event is not in the binary mode, even if it has headers of this mode', async () => {
    const event = await joined()
    const headers = { 'ce-id': 'other', 'ce-type': 'unknown', 'content-type': 'application/cloudevents+json' }
    assert.deepEqual((await send(h, event, headers)).body.id, event.id)
  })

  test('the limit of 64 KiB counts the body', async () => {
    const [data, headers] = toBinary(await joined())
    assert.equal((await send(h, JSON.stringify(data).padEnd(65_536), headers)).status, 202)
    assert.equal((await send(h, JSON.stringify(data).padEnd(65_537), headers)).status, 413)
  })

  const wrong: [string, string, string, Record<string, unknown>?][] = [
    ['ce-specversion', '', 'The ce-specversion header is required.'],
    ['ce-specversion', '0.3', 'The ce-specversion header must be "1.0".'],
    ['ce-id', '', 'The ce-id header is required.'],
    ['ce-id', '100%', 'The ce-id header must be percent-encoded UTF-8.'],
    ['ce-source', '%ff', 'The ce-source header must be percent-encoded UTF-8.'],
    ['ce-source', '/été', 'The ce-source header must be percent-encoded UTF-8.'],
    ['ce-id', 'a%00b', 'The ce-id header contains a forbidden character.'],
    ['ce-type', 'game_exploded', 'There is no such type of event.'],
    ['ce-time', '2999-01-01T00:00:00Z', 'The ce-time header is more than 5 minutes ahead.'],
    ['data.place', '', 'The data.place field contains a forbidden character.', { place: 'Court\0' }],
    ['data.game_id', '', 'The data.game_id field is required.', { game_id: undefined }],
  ]
  for (const [field, value, message, data] of wrong) {
    test(`the error for ${field} ${JSON.stringify(value)} ${JSON.stringify(data ?? '')} names ${field}`, async () => {
      const header = field.startsWith('ce-') ? { [field]: value } : {}
      const answer = await send(h, ...toBinary(await joined(data), { ...header, 'accept-language': 'en' }))
      assert.equal(answer.status, 422, answer.text)
      assert.deepEqual(answer.body.errors, { [field]: [message] })
    })
  }

  test('a request with only one header of the binary mode gets a 422 that names the other headers and the data', async () => {
    const { status, body } = await send(h, '', { 'content-type': 'application/json', 'ce-id': 'x' })
    assert.equal(status, 422)
    assert.deepEqual(Object.keys(body.errors), ['ce-specversion', 'ce-source', 'ce-type', 'ce-time', 'data'])
    assert.match(body.message, /^L’en-tête ce-specversion est obligatoire\./)
    const empty = await send(h, 'null', { 'content-type': 'application/json', 'ce-id': 'x' })
    assert.deepEqual(empty.body, body)
  })

  test('a header that is sent twice, and an id with other content, get a 422 that names the header', async () => {
    const event = await joined()
    const twice = await send(h, ...toBinary(event, { 'ce-id': ['a', 'b'] }))
    assert.deepEqual(Object.keys(twice.body.errors), ['ce-id'])
    assert.equal((await send(h, ...toBinary(event))).status, 202)
    const other = await send(h, ...toBinary({ ...event, data: { ...event.data, place: 'Court 3' } }))
    assert.equal(other.body.code, 'event_mismatch')
    assert.deepEqual(Object.keys(other.body.errors), ['ce-id'])
  })
})

describe('data_base64', () => {
  const base64 = (text: string) => Buffer.from(text).toString('base64')
  const wrong: [string, unknown, string][] = [
    ['a number', 7, 'data_base64'],
    ['text that is not base64', 'e3_0', 'data_base64'],
    ['base64 of text that is not JSON', base64('{'), 'data_base64'],
    ['base64 of bytes that are not UTF-8', Buffer.from([0x22, 0xff, 0x22]).toString('base64'), 'data_base64'],
    ['base64 of a list', base64('[]'), 'data'],
    ['base64 of data with NUL', base64('{"place": "a\\u0000"}'), 'data.place'],
  ]
  for (const [name, data_base64, field] of wrong) {
    test(`${name} gets a 422 that names ${field}`, async () => {
      const { data: _, ...envelope } = await joined()
      const answer = await send(h, { ...envelope, data_base64 })
      assert.equal(answer.status, 422, answer.text)
      assert.deepEqual(Object.keys(answer.body.errors), [field])
    })
  }

  test('an event with data and data_base64 gets a 422, and null or an empty data_base64 counts as absent', async () => {
    const event = await joined()
    const both = await send(h, { ...event, data_base64: base64(JSON.stringify(event.data)) })
    assert.deepEqual([both.status, Object.keys(both.body.errors)], [422, ['data_base64']])
    assert.equal((await send(h, { ...event, data_base64: null })).status, 202)
    assert.equal((await send(h, { ...event, data_base64: '' })).body.status, 'duplicate')
  })
})

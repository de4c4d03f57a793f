import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { harness, INTAKE_KEY } from './support/app.ts'
import { cloudEvent, EVENTS, newGameId, report, send, sendBatch } from './support/games.ts'
import { signUp } from './support/scenario.ts'

const h = harness()

const state = (more: Record<string, unknown> = {}) => ({
  game_id: newGameId(),
  creator_id: 1,
  player_ids: [1],
  ...more,
})

describe('authorization at the intake', () => {
  test('a request with a missing or wrong key gets 401, and a request with a user’s token gets 403', async () => {
    const body = cloudEvent('game_created', state())
    for (const token of [undefined, 'wrong', `${INTAKE_KEY}x`]) {
      const { status, headers } = await h.call('POST', EVENTS, { ...(token && { token }), body })
      assert.equal(status, 401)
      assert.match(headers['www-authenticate']!, /^Bearer/)
    }
    const { token } = await signUp(h)
    const answer = await h.call('POST', EVENTS, { token, body })
    assert.deepEqual([answer.status, answer.body.code], [403, 'forbidden'])
  })
})

describe('media types and sizes at the intake', () => {
  test('a single event is accepted as CloudEvents JSON or plain JSON, and other media types get 415', async () => {
    for (const type of [
      'application/cloudevents+json',
      'application/json',
      'Application/CloudEvents+JSON; charset=utf-8',
    ]) {
      assert.equal((await send(h, cloudEvent('game_created', state()), { 'content-type': type })).status, 202, type)
    }
    const answer = await send(h, cloudEvent('game_created', state()), { 'content-type': 'text/plain' })
    assert.deepEqual([answer.status, answer.body.code], [415, 'unsupported_media_type'])
  })

  test('an event over 64 KiB or a batch over 1 MiB gets 413, regardless of its media type', async () => {
    const padded = (bytes: number, value: unknown) => JSON.stringify(value).padEnd(bytes)
    const one = cloudEvent('game_created', state())
    assert.equal((await send(h, padded(65_536, one))).status, 202)
    assert.equal((await send(h, padded(65_537, one))).status, 413)
    assert.equal((await send(h, padded(65_537, one), { 'content-type': 'text/plain' })).status, 413)
    const batch = [cloudEvent('game_created', state())]
    assert.equal((await sendBatch(h, padded(1_048_576, batch))).status, 200)
    const answer = await sendBatch(h, padded(1_048_577, batch))
    assert.deepEqual([answer.status, answer.body.code], [413, 'payload_too_large'])
  })

  test('malformed JSON, a list as an event and an object as a batch get a 422 that names the field body', async () => {
    for (const answer of [
      await send(h, '{'),
      await send(h, [cloudEvent('game_created', state())]),
      await send(h, 'null'),
      await sendBatch(h, '['),
      await sendBatch(h, cloudEvent('game_created', state())),
      await sendBatch(h, 'null'),
      await sendBatch(h, ''),
    ]) {
      assert.equal(answer.status, 422, answer.text)
      assert.deepEqual(Object.keys(answer.body.errors), ['body'])
    }
  })
})

describe('a 422 that names the invalid fields', () => {
  const wrong: [string, string, Record<string, unknown>, Record<string, unknown>?][] = [
    ['id', 'game_created', {}, { id: '' }],
    ['id', 'game_created', {}, { id: 7 }],
    ['source', 'game_created', {}, { source: null }],
    ['specversion', 'game_created', {}, { specversion: '0.3' }],
    ['type', 'game_created', {}, { type: 'game_exploded' }],
    ['type', 'game_created', {}, { type: undefined }],
    ['type', 'game_created', {}, { type: 'constructor' }],
    ['time', 'game_created', {}, { time: undefined }],
    ['time', 'game_created', {}, { time: '2026-11-28' }],
    ['time', 'game_created', {}, { time: '2026-11-28T09:00:00' }],
    ['time', 'game_created', {}, { time: '2026-02-30T09:00:00Z' }],
    ['data', 'game_created', {}, { data: [] }],
    ['data.game_id', 'game_created', { game_id: undefined }],
    ['data.game_id', 'game_created', { game_id: 0 }],
    ['data.game_id', 'game_created', { game_id: '12' }],
    ['data.game_id', 'game_created', { game_id: 2 ** 53 }],
    ['data.creator_id', 'game_created', { creator_id: null }],
    ['data.creator_id', 'score_submitted', { creator_id: 1.5, score: { sets: '6-4' } }],
    ['data.player_ids', 'game_created', { player_ids: undefined }],
    ['data.player_ids', 'game_created', { player_ids: [1, 2, 3, 4, 5] }],
    ['data.player_ids', 'game_created', { player_ids: [1, 2, 1] }],
    ['data.player_ids', 'game_created', { player_ids: '1,2' }],
    ['data.player_ids.1', 'game_created', { player_ids: [1, null] }],
    ['data.actor_id', 'game_joined', {}],
    ['data.actor_id', 'game_left', { actor_id: null }],
    ['data.by_id', 'game_left', { actor_id: 2, by_id: 'me' }],
    ['data.starts_at', 'game_created', { starts_at: undefined }],
    ['data.starts_at', 'game_started', { starts_at: null }],
    ['data.starts_at', 'game_reminder', { starts_at: '10000-01-01T00:00:00Z' }],
    ['data.starts_at', 'game_full', { starts_at: '0000-06-01T00:00:00Z' }],
    ['data.starts_at', 'game_created', { starts_at: '2026-11-28 18:00:00Z' }],
    ['data.starts_at', 'score_submitted', { starts_at: 'soon', score: { sets: '6-4' } }],
    ['data.score', 'score_submitted', {}],
    ['data.score', 'score_finalized', { score: '6-4 6-3' }],
    ['data.score.sets', 'score_validated', { score: { id: 3 } }],
    ['data.score.sets', 'score_validated', { score: { sets: '6-4\n6-3' } }],
    ['data.score.sets', 'score_validated', { score: { sets: 'x'.repeat(101) } }],
    ['data.score.id', 'score_contested', { score: { id: -1, sets: '6-4' } }],
    ['data.place', 'game_updated', { place: 'x'.repeat(121) }],
    ['data.place', 'game_updated', { place: 'Court\u20282' }],
    ['data.place', 'game_updated', { place: 'Court\u0000' }],
    ['id', 'game_updated', {}, { id: 'lone \ud800' }],
  ]
  for (const [field, type, data, envelope] of wrong) {
    const wrongFields = JSON.stringify({ ...data, ...envelope }).slice(0, 60)
    test(`a ${type} with ${wrongFields} gets a 422 that names ${field}`, async () => {
      const answer = await send(h, cloudEvent(type, state(data), envelope))
      assert.equal(answer.status, 422, answer.text)
      assert.equal(answer.body.code, 'validation_failed')
      assert.deepEqual(Object.keys(answer.body.errors), [field])
    })
  }

  test('a 422 names all invalid fields of an event, and an empty body counts as an empty object', async () => {
    const { body } = await send(h, {})
    assert.deepEqual(Object.keys(body.errors), ['specversion', 'id', 'source', 'type', 'time', 'data'])
    assert.deepEqual((await h.call('POST', EVENTS, { token: INTAKE_KEY })).body, body)
  })

  test('an event with thousands of invalid player ids gets an answer of less than 1000 characters', async () => {
    const { status, text } = await send(h, cloudEvent('game_created', state({ player_ids: Array(10_000).fill('a') })))
    assert.equal(status, 422)
    assert.ok(text.length < 1000, text)
  })

  test('an event whose time is more than 5 minutes in the future is refused', async () => {
    const ahead = (ms: number) => ({ time: new Date(h.clock.now().getTime() + ms).toISOString() })
    assert.equal((await send(h, cloudEvent('game_created', state(), ahead(300_000)))).status, 202)
    const answer = await send(h, cloudEvent('game_created', state(), ahead(300_001)))
    assert.deepEqual([answer.status, Object.keys(answer.body.errors)], [422, ['time']])
  })

  test('the error message is in English if Accept-Language prefers English', async () => {
    const answer = await send(h, cloudEvent('game_joined', state()), { 'accept-language': 'en' })
    assert.equal(answer.body.message, 'The data.actor_id field is required.')
  })
})

describe('events that are accepted', () => {
  test('other CloudEvents attributes, extensions and unknown JSON members are ignored', async () => {
    const extra = { datacontenttype: 'text/xml', subject: 'x', traceparent: { deep: [1] }, data_base64: '' }
    const body = JSON.stringify(cloudEvent('game_created', state({ weather: 'fine', score: 7 }), extra))
    assert.equal((await send(h, `{"__proto__":{"type":"x"},${body.slice(1)}`)).status, 202)
  })

  test('an event may have no players, a place of 120 characters, the greatest game id and any RFC 3339 time', async () => {
    const place = '🎾'.repeat(120)
    const game_id = Number.MAX_SAFE_INTEGER
    await report(h, cloudEvent('game_created', state({ game_id, player_ids: [], place: ` ${place}\t` })))
    const [row] = await h.database.sql`select place, player_ids from game where id = ${game_id}`
    assert.deepEqual(row, { place, player_ids: [] })
    for (const time of [
      '2026-11-28t09:00:00z',
      '2016-12-31T23:59:60Z',
      '2026-11-28T10:00:00.123456789+01:00',
      '0001-01-01T00:00:00Z',
    ]) {
      await report(h, cloudEvent('game_created', state({ starts_at: '9999-12-31T23:59:59Z' }), { time }))
    }
  })

  test('the id and the source of an event may have any length', async () => {
    const long = { id: 'x'.repeat(30_000), source: '/é'.repeat(10_000) }
    const body = cloudEvent('game_created', state(), long)
    assert.deepEqual((await send(h, body)).body, { id: long.id, status: 'accepted', notifications: 0 })
    assert.equal((await send(h, body)).body.status, 'duplicate')
  })
})

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { harness } from './support/app.ts'
import {
  atMinute,
  cloudEvent,
  makeFourPlayers,
  newGameId,
  readGame,
  readTypes,
  send,
  sendBatch,
} from './support/games.ts'

const h = harness()

const created = (more: object = {}) =>
  cloudEvent('game_created', { game_id: newGameId(), creator_id: 1, player_ids: [1], ...more })

function statuses(results: { status: string }[]): string[] {
  return results.map(result => result.status)
}

describe('a batch of events', () => {
  test('a batch gets 200 and one result per event, in the order of the batch, and a repeated event is a duplicate', async () => {
    const [anna, bob] = await makeFourPlayers(h)
    const items = [
      cloudEvent('game_joined', { game_id: newGameId(), creator_id: anna, player_ids: [anna, bob], actor_id: bob }),
      created(),
    ]
    const { status, body } = await sendBatch(h, items)
    assert.equal(status, 200)
    assert.deepEqual(body, {
      results: [
        { id: items[0]!.id, status: 'accepted', notifications: 1 },
        { id: items[1]!.id, status: 'accepted', notifications: 0 },
      ],
    })
    assert.deepEqual((await sendBatch(h, items)).body.results, [
      { id: items[0]!.id, status: 'duplicate', notifications: 1 },
      { id: items[1]!.id, status: 'duplicate', notifications: 0 },
    ])
    assert.equal((await send(h, items[0])).body.status, 'duplicate')
  })

  test('a batch of 101 events gets 422, a batch of 100 events gets 200, and an empty batch gets no results', async () => {
    const items = Array.from({ length: 101 }, () => created())
    const answer = await sendBatch(h, items)
    assert.deepEqual([answer.status, Object.keys(answer.body.errors)], [422, ['body']])
    const { body } = await sendBatch(h, items.slice(1))
    assert.deepEqual(new Set(statuses(body.results)), new Set(['accepted']))
    assert.equal(body.results.length, 100)
    assert.deepEqual((await sendBatch(h, [])).body, { results: [] })
  })

  test('the result of a refused item gives the reason, and the other items are accepted', async () => {
    const known = created()
    await send(h, known)
    const good = [created(), created()]
    const { body } = await sendBatch(h, [
      good[0],
      { ...created(), id: 'late', time: '2030-01-01T00:00:00Z' },
      { ...known, type: 'game_updated' },
      { ...created(), id: undefined },
      { ...created(), id: 7 },
      { ...created(), id: 'nul\u0000' },
      { ...created({ place: '\udfff' }), id: 'lone' },
      null,
      'text',
      [],
      { ...created(), id: 'fat', subject: 'x'.repeat(65_536) },
      good[1],
    ])
    const required = ['Le champ id est obligatoire.']
    const forbidden = (field: string) => `Le champ ${field} contient un caractère interdit.`
    const notObject = { message: 'Le corps doit être un objet JSON.', code: 'validation_failed' }
    const rejected = (id: string | null, message: string, field: string, code = 'validation_failed') => ({
      id,
      status: 'rejected',
      message,
      code,
      errors: { [field]: [message] },
    })
    assert.deepEqual(body.results, [
      { id: good[0]!.id, status: 'accepted', notifications: 0 },
      rejected('late', 'Le champ time a plus de 5 minutes d’avance.', 'time'),
      rejected(known.id, 'Cet identifiant a déjà servi pour un autre contenu.', 'id', 'event_mismatch'),
      rejected(null, required[0]!, 'id'),
      rejected(null, 'Le champ id doit être un texte.', 'id'),
      rejected(null, forbidden('id'), 'id'),
      rejected('lone', forbidden('data.place'), 'data.place'),
      ...[0, 1, 2].map(() => ({ id: null, status: 'rejected', ...notObject, errors: { body: [notObject.message] } })),
      { id: 'fat', status: 'rejected', message: 'Le corps dépasse 64 Kio.', code: 'payload_too_large' },
      { id: good[1]!.id, status: 'accepted', notifications: 0 },
    ])
  })

  test('an item that nests too deeply is refused, and the other items are accepted', async () => {
    const good = created()
    const deep = '['.repeat(250_000) + ']'.repeat(250_000)
    const { status, body } = await sendBatch(h, `[{"id":"deep","x":${deep}},${JSON.stringify(good)}]`)
    assert.equal(status, 200)
    assert.deepEqual(statuses(body.results), ['rejected', 'accepted'])
    assert.equal((await send(h, `{"id":"deep","x":${deep.slice(0, 30_000)}${deep.slice(-30_000)}}`)).status, 422)
  })

  test('the message for a refused item is in the language that Accept-Language prefers', async () => {
    const { body } = await sendBatch(h, [{}], { 'accept-language': 'en' })
    assert.equal(body.results[0].message, 'The specversion field is required. (and 5 more error(s))')
  })

  test('if two events of a batch have one id, the second is a duplicate, or a mismatch if its content differs', async () => {
    const [anna, bob] = await makeFourPlayers(h)
    const joined = cloudEvent('game_joined', {
      game_id: newGameId(),
      creator_id: anna,
      player_ids: [anna],
      actor_id: bob,
    })
    const other = { ...joined, data: { ...joined.data, player_ids: [] } }
    const { body } = await sendBatch(h, [joined, joined, other])
    assert.deepEqual(statuses(body.results), ['accepted', 'duplicate', 'rejected'])
    assert.deepEqual([body.results[1].notifications, body.results[2].code], [1, 'event_mismatch'])
    assert.deepEqual(await readTypes(h, anna), [['game_joined']])
  })

  test('the intake applies the events of a batch in the order of the batch', async () => {
    const all = await makeFourPlayers(h)
    const game_id = newGameId()
    const step = (type: string, player_ids: number[], minute: number, place: string) =>
      cloudEvent(type, { game_id, creator_id: all[0], player_ids, actor_id: all[3], place }, atMinute(minute))
    const three = all.slice(0, 3)
    const { body } = await sendBatch(h, [
      step('game_joined', all, 1, 'a'),
      step('game_full', all, 1, 'b'),
      step('game_left', three, 3, 'c'),
      step('game_updated', all, 2, 'late'),
      step('game_joined', all, 4, 'd'),
      step('game_started', all, 5, 'e'),
      step('game_started', all, 6, 'f'),
      step('game_cancelled', three, 0, 'g'),
      step('game_left', three, 7, 'h'),
    ])
    assert.deepEqual(
      body.results.map((result: { notifications: number }) => result.notifications),
      [7, 0, 3, 0, 7, 4, 0, 3, 0],
    )
    const types = [
      'game_joined',
      'game_full',
      'game_left',
      'game_joined',
      'game_full',
      'game_started',
      'game_cancelled',
    ]
    assert.deepEqual(await readTypes(h, all[0]), [types])
    const row = await readGame(h, game_id)
    assert.deepEqual([row!.place, row!.cancelled, row!.player_ids], ['h', true, three])
  })
})

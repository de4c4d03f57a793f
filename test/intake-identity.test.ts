import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { hasContent } from '../src/games/event-log.ts'
import { type GameEvent, parseEvent } from '../src/games/parse-event.ts'
import { deriveKeys } from '../src/keys.ts'
import { harness } from './support/app.ts'
import { cloudEvent, newGameId, report, send } from './support/games.ts'

const h = harness()

const created = (data: Record<string, unknown> = {}, envelope: Record<string, unknown> = {}) =>
  cloudEvent('game_created', { game_id: newGameId(), creator_id: 1, player_ids: [1], ...data }, envelope)

describe('the identity of an event', () => {
  test('a repeated event with the same content gets 200 and the status duplicate', async () => {
    const body = created()
    assert.equal((await send(h, body)).status, 202)
    const again = await send(h, body)
    assert.deepEqual([again.status, again.body], [200, { id: body.id, status: 'duplicate', notifications: 0 }])
  })

  test('an event is a duplicate even if blanks, time zones, ignored members or the order of members differ', async () => {
    const body = created({ player_ids: [1, 2], place: 'Court 2' }, { time: '2026-11-28T09:00:00Z' })
    await report(h, body)
    const { data, ...envelope } = body
    const reversed = Object.fromEntries(Object.entries(data).reverse())
    const other = {
      data: {
        ...reversed,
        place: ' Court 2',
        player_ids: [2, 1],
        starts_at: '2027-01-16T17:00:00Z',
        actor_id: null,
        x: 1,
      },
      ...envelope,
      time: '2026-11-28T10:00:00.000+01:00',
      subject: 'x',
    }
    assert.equal((await send(h, JSON.stringify(other, null, 4))).body.status, 'duplicate')
  })

  const contents: [string, (body: ReturnType<typeof cloudEvent>) => object][] = [
    ['type', body => ({ ...body, type: 'game_updated' })],
    ['time', body => ({ ...body, time: '2026-11-28T09:00:00.000001Z' })],
    ['game', body => ({ ...body, data: { ...body.data, game_id: newGameId() } })],
    ['players', body => ({ ...body, data: { ...body.data, player_ids: [1, 2] } })],
    ['start', body => ({ ...body, data: { ...body.data, starts_at: '2027-01-16T18:00:01+01:00' } })],
    ['place', body => ({ ...body, data: { ...body.data, place: 'Court 3' } })],
  ]
  for (const [what, change] of contents) {
    test(`an event that reuses an id with another ${what} gets a 422 event_mismatch and changes nothing`, async () => {
      const body = created({}, { time: '2026-11-28T09:00:00Z' })
      await report(h, body)
      const games = await h.database.sql`select * from game order by id`
      const answer = await send(h, change(body))
      assert.deepEqual([answer.status, answer.body.code], [422, 'event_mismatch'])
      assert.deepEqual(Object.keys(answer.body.errors), ['id'])
      assert.deepEqual(await h.database.sql`select * from game order by id`, games)
      assert.equal((await send(h, body)).body.status, 'duplicate')
    })
  }

  test('ids or sources that differ only in blanks or case identify different events', async () => {
    const body = created()
    for (const name of [
      {},
      { id: ` ${body.id}` },
      { id: body.id.toUpperCase() },
      { source: '/games ' },
      { source: '/Games' },
    ]) {
      const answer = await send(h, { ...body, ...name })
      assert.equal(answer.status, 202)
      assert.equal(answer.body.id, { ...body, ...name }.id)
    }
    await report(h, created({}, { id: 'b', source: 'a' }))
    await report(h, created({}, { id: 'ab', source: ' ' }))
  })

  test('the table event contains no hash that an attacker without the secret can compute from the content', async () => {
    const body = created({ player_ids: [1, 2] }, { time: '2026-11-28T09:00:00Z' })
    await report(h, body)
    const event = parse(body)
    const [row] = await h.database.sql<{ digest: string }>`select digest from event where key = ${event.key}`
    assert.match(row!.digest, /^[\w-]{8}\.[\w-]{43}$/)
    assert.ok(!row!.digest.includes(event.digest))
    const same = created({ ...body.data }, { time: body.time })
    await report(h, same)
    const [other] = await h.database.sql<{ digest: string }>`select digest from event where key = ${parse(same).key}`
    assert.equal(parse(same).digest, event.digest)
    assert.notEqual(other!.digest, row!.digest)
  })

  test('an event that an earlier version stored with a plain hash is still recognized', async () => {
    const body = created({}, { time: '2026-11-28T09:00:00Z' })
    await report(h, body)
    const { key, digest } = parse(body)
    await h.database.sql`update event set digest = ${digest} where key = ${key}`
    assert.equal((await send(h, body)).body.status, 'duplicate')
    const changed = await send(h, { ...body, data: { ...body.data, place: 'Court 3' } })
    assert.equal(changed.body.code, 'event_mismatch')
  })

  test('after a rotation of JWT_SECRET a repeated event is recognized, even after the old secret is removed', () => {
    const [old, renewed] = ['kuC4vBnmNwzIEYxX0mVQJ1y7s2dGgqLh', 'qL3vXr8tBn2mKs7wPf4zHc9yJd6gVa5e']
    const event = parse(created())
    const changed = { ...event, digest: parse(created()).digest }
    const stored = (digest: string) => ({ digest, notifications: 0, fresh: false })
    const entry = stored(deriveKeys([old]).digest(`${event.key}:${event.digest}`))
    for (const [secrets, sameChanged] of [
      [[old], false],
      [[old, renewed], false],
      [[renewed, old], false],
      [[renewed], true],
    ] as const) {
      assert.equal(hasContent(deriveKeys(secrets), entry, event), true)
      assert.equal(hasContent(deriveKeys(secrets), entry, changed), sameChanged)
    }
  })
})

function parse(body: unknown): GameEvent {
  const event = parseEvent(body, h.clock.now())
  assert.ok(!(event instanceof Error))
  return event
}

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { harness } from './support/app.ts'
import {
  atMinute,
  cloudEvent,
  makePlayer,
  newGameId,
  readTypes,
  send,
  sendBatch,
  TYPES_EXCEPT_CANCELLATION,
} from './support/games.ts'

const h = harness()

type Step = { type: string; others: number[]; day: number; place: string | undefined }

const anySteps = (types: string[]) =>
  fc.array(
    fc.record({
      type: fc.constantFrom(...types),
      others: fc.subarray([900_001, 900_002, 900_003, 900_004], { maxLength: 3 }),
      day: fc.integer({ min: 10, max: 28 }),
      place: fc.option(fc.constantFrom('Court 1', 'Court 2'), { nil: undefined }),
    }),
    { minLength: 1, maxLength: 8 },
  )

/** Returns events about a game that the user created. Each event is one minute later than the previous event. */
function story(userId: number, game_id: number, steps: readonly Step[]) {
  return steps.map(({ type, others, day, place }, minute) => {
    // After a `game_left`, a game has at most three players: the user and two others.
    const player_ids = [userId, ...(type === 'game_left' ? others.slice(0, 2) : others)]
    const starts_at = `2027-01-${day}T18:00:00Z`
    return cloudEvent(
      type,
      { game_id, creator_id: userId, actor_id: others[0] ?? 900_009, player_ids, starts_at, place },
      atMinute(minute),
    )
  })
}

/** Reads a game without the id of its creator, because the games that a test compares have different creators. */
async function readOthersGame(gameId: number, userId: number) {
  const [row] = await h.database.sql`
    select array_remove(player_ids, ${userId}::bigint) as others, starts_at, place, fact_time, cancelled
    from game where id = ${gameId}`
  return row
}

async function countFull(userId: number): Promise<number> {
  const [types] = await readTypes(h, userId)
  return types!.filter(type => type === 'game_full').length
}

/**
 * Reports the events of one game in chronological order. Then reports the same events for a second game in another
 * order and with repetitions. The second game gets its first event in one request and all other events in two batches.
 * @param order the indexes of the events that are reported first, before all events in reverse order
 * @param cut the number of events in the first of the two batches
 */
async function reportTwice(steps: readonly Step[], order: readonly number[], cut: number) {
  const [ordered, shuffled] = [
    { userId: await makePlayer(h), gameId: newGameId() },
    { userId: await makePlayer(h), gameId: newGameId() },
  ]
  await sendBatch(h, story(ordered.userId, ordered.gameId, steps))
  const events = story(shuffled.userId, shuffled.gameId, steps)
  const [first, ...rest] = [...order.map(index => events[index % events.length]!), ...events.toReversed()]
  for (const answer of [
    await send(h, first),
    await sendBatch(h, rest.slice(0, cut)),
    await sendBatch(h, rest.slice(cut)),
  ]) {
    assert.ok(answer.status < 300, answer.text)
  }
  return { ordered, shuffled }
}

const order = fc.array(fc.nat({ max: 7 }), { maxLength: 12 })
const cut = fc.nat({ max: 12 })

describe('events in any order, some of them repeated', () => {
  test('the order of events does not change the resulting game, even if some events are repeated', async () => {
    await fc.assert(
      fc.asyncProperty(
        anySteps([...TYPES_EXCEPT_CANCELLATION, 'game_cancelled']),
        order,
        cut,
        async (drawn, ...arrival) => {
          const { ordered, shuffled } = await reportTwice(drawn, ...arrival)
          assert.deepEqual(
            await readOthersGame(shuffled.gameId, shuffled.userId),
            await readOthersGame(ordered.gameId, ordered.userId),
          )
        },
      ),
      { numRuns: 150 },
    )
  })

  test('events in a wrong order cause at most as many game_full as in the right order, and at least one if the game is full', async () => {
    const types = ['game_created', 'game_updated', 'game_joined', 'game_left']
    await fc.assert(
      fc.asyncProperty(anySteps(types), order, cut, async (drawn, ...arrival) => {
        const { ordered, shuffled } = await reportTwice(drawn, ...arrival)
        const [count, maximum] = [await countFull(shuffled.userId), await countFull(ordered.userId)]
        assert.ok(count <= maximum, `${count} > ${maximum}`)
        const row = await readOthersGame(shuffled.gameId, shuffled.userId)
        if ((row!.others as number[]).length === 3) assert.ok(count > 0)
      }),
      { numRuns: 150 },
    )
  })
})

describe('arbitrary JSON as an event', () => {
  const oddValue = fc.oneof(
    fc.jsonValue(),
    fc.string({ unit: 'binary' }),
    fc.double(),
    fc.constantFrom(0, 2 ** 53, '', '\0', '\ud800'),
  )
  const mostly = <T>(...values: T[]) =>
    fc.option(fc.oneof({ weight: 30, arbitrary: fc.constantFrom(...values) }, oddValue), { nil: undefined, freq: 30 })
  const anEvent = fc.record({
    specversion: mostly('1.0'),
    id: fc.oneof(fc.uuid(), oddValue),
    source: mostly('/games'),
    type: mostly('game_joined', 'game_left', 'game_cancelled', 'game_full', 'score_finalized', 'game_started'),
    time: mostly('2026-11-28T09:00:00Z', '2026-11-28T09:00:00.5+14:00', '0001-01-01T00:00:00Z'),
    data: fc.oneof(
      {
        weight: 8,
        arbitrary: fc.record({
          game_id: mostly(1, 2, 2 ** 53 - 1),
          creator_id: mostly(1, 2),
          player_ids: mostly<unknown>([], [1, 2], [1, 2, 3, 4]),
          actor_id: mostly(1, 2),
          by_id: mostly(1, 2),
          starts_at: mostly('2027-01-16T18:00:00Z', '9999-12-31T23:59:60Z', '0001-01-01T00:00:00+00:00'),
          place: mostly('Court 2'),
          score: mostly({ sets: '6-4' }, { id: 1, sets: '6-4' }),
        }),
      },
      oddValue,
    ),
  })

  test('an arbitrary event is accepted, or gets a 422 that names its invalid fields', async () => {
    let accepted = 0
    await fc.assert(
      fc.asyncProperty(anEvent, async body => {
        const { status, text, body: answer } = await send(h, body)
        assert.ok([200, 202, 422].includes(status), `${status} ${text}`)
        if (status === 422) assert.ok(Object.keys(answer.errors).length > 0)
        else accepted += 1
      }),
      { numRuns: 500 },
    )
    // Without this assertion, the test would pass if every event were refused.
    assert.ok(accepted > 10, String(accepted))
  })

  test('a batch of arbitrary items gets 200 and one result for each item', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.oneof({ weight: 5, arbitrary: anEvent }, oddValue), { maxLength: 8 }),
        async items => {
          const { status, body } = await sendBatch(h, items)
          assert.equal(status, 200)
          assert.equal(body.results.length, items.length)
        },
      ),
      { numRuns: 150 },
    )
  })
})

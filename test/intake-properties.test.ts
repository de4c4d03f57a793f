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

const steps = (types: string[]) =>
  fc.array(
    fc.record({
      type: fc.constantFrom(...types),
      others: fc.subarray([900_001, 900_002, 900_003, 900_004], { maxLength: 3 }),
      day: fc.integer({ min: 10, max: 28 }),
      place: fc.option(fc.constantFrom('Court 1', 'Court 2'), { nil: undefined }),
    }),
    { minLength: 1, maxLength: 8 },
  )

/** The facts of a game of somebody's, a minute apart. */
function story(userId: number, game_id: number, told: readonly Step[]) {
  return told.map(({ type, others, day, place }, minute) => {
    // Whoever leaves leaves fewer than four.
    const player_ids = [userId, ...(type === 'game_left' ? others.slice(0, 2) : others)]
    const starts_at = `2027-01-${day}T18:00:00Z`
    return cloudEvent(
      type,
      { game_id, creator_id: userId, actor_id: others[0] ?? 900_009, player_ids, starts_at, place },
      atMinute(minute),
    )
  })
}

/** What is known of the game, but for whom it belongs to. */
async function projection(gameId: number, userId: number) {
  const [row] = await h.database.sql`
    select array_remove(player_ids, ${userId}::bigint) as others, starts_at, place, fact_time, cancelled
    from game where id = ${gameId}`
  return row
}

async function fullsAnnounced(userId: number): Promise<number> {
  const [types] = await readTypes(h, userId)
  return types!.filter(type => type === 'game_full').length
}

/** Reports a story in its order, and the same one of another game in another order, repeats and batches among it. */
async function reportTwice(told: readonly Step[], order: readonly number[], cut: number) {
  const [ordered, shuffled] = [
    { userId: await makePlayer(h), gameId: newGameId() },
    { userId: await makePlayer(h), gameId: newGameId() },
  ]
  await sendBatch(h, story(ordered.userId, ordered.gameId, told))
  const events = story(shuffled.userId, shuffled.gameId, told)
  // Whatever the drawn order leaves out follows backwards.
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

describe('facts in any order, some of them repeated', () => {
  test('end in the same game', async () => {
    await fc.assert(
      fc.asyncProperty(
        steps([...TYPES_EXCEPT_CANCELLATION, 'game_cancelled']),
        order,
        cut,
        async (told, ...arrival) => {
          const { ordered, shuffled } = await reportTwice(told, ...arrival)
          assert.deepEqual(
            await projection(shuffled.gameId, shuffled.userId),
            await projection(ordered.gameId, ordered.userId),
          )
        },
      ),
      { numRuns: 150 },
    )
  })

  test('tell of no filling twice, and of the present one always', async () => {
    const types = ['game_created', 'game_updated', 'game_joined', 'game_left']
    await fc.assert(
      fc.asyncProperty(steps(types), order, cut, async (told, ...arrival) => {
        const { ordered, shuffled } = await reportTwice(told, ...arrival)
        const [fulls, most] = [await fullsAnnounced(shuffled.userId), await fullsAnnounced(ordered.userId)]
        assert.ok(fulls <= most, `${fulls} > ${most}`)
        const row = await projection(shuffled.gameId, shuffled.userId)
        if ((row!.others as number[]).length === 3) assert.ok(fulls > 0)
      }),
      { numRuns: 150 },
    )
  })
})

describe('anything at all', () => {
  const odd = fc.oneof(
    fc.jsonValue(),
    fc.string({ unit: 'binary' }),
    fc.double(),
    fc.constantFrom(0, 2 ** 53, '', '\0', '\ud800'),
  )
  const or = <T>(...values: T[]) =>
    fc.option(fc.oneof({ weight: 30, arbitrary: fc.constantFrom(...values) }, odd), { nil: undefined, freq: 30 })
  const anEvent = fc.record({
    specversion: or('1.0'),
    id: fc.oneof(fc.uuid(), odd),
    source: or('/games'),
    type: or('game_joined', 'game_left', 'game_cancelled', 'game_full', 'score_finalized', 'game_started'),
    time: or('2026-11-28T09:00:00Z', '2026-11-28T09:00:00.5+14:00', '0001-01-01T00:00:00Z'),
    data: fc.oneof(
      {
        weight: 8,
        arbitrary: fc.record({
          game_id: or(1, 2, 2 ** 53 - 1),
          creator_id: or(1, 2),
          player_ids: or<unknown>([], [1, 2], [1, 2, 3, 4]),
          actor_id: or(1, 2),
          by_id: or(1, 2),
          starts_at: or('2027-01-16T18:00:00Z', '9999-12-31T23:59:60Z', '0001-01-01T00:00:00+00:00'),
          place: or('Court 2'),
          score: or({ sets: '6-4' }, { id: 1, sets: '6-4' }),
        }),
      },
      odd,
    ),
  })

  test('is accepted or refused by name, never a fault', async () => {
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
    // Else this would be a test of refusals alone.
    assert.ok(accepted > 10, String(accepted))
  })

  test('in a batch: an answer for each', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.oneof({ weight: 5, arbitrary: anEvent }, odd), { maxLength: 8 }), async items => {
        const { status, body } = await sendBatch(h, items)
        assert.equal(status, 200)
        assert.equal(body.results.length, items.length)
      }),
      { numRuns: 150 },
    )
  })
})

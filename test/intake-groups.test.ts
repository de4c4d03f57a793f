import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { anotherApp, harness, INTAKE_KEY, settingsFor } from './support/app.ts'
import { waitsForLock } from './support/database.ts'
import {
  AT,
  AT_GATE,
  countFailures,
  countWaiting,
  failAtPlace,
  sendDuringGroup,
  sendEach,
  update,
  waitsAtGate,
  withClosedGate,
} from './support/event-groups.ts'
import { cloudEvent, EVENTS, makeFourPlayers, newGameId, readGame, readTypes, sendBatch } from './support/games.ts'
import { METRICS_TOKEN } from './support/metrics.ts'
import { startProxy } from './support/proxy.ts'
import { startService } from './support/service.ts'
import { waitUntil } from './support/wait-until.ts'

const h = harness({ METRICS_TOKEN })

const ROUNDS = 60

const statuses = (answers: { status: number }[]) => answers.map(({ status }) => status)

/** Returns how many of the events with a type each transaction stored, oldest transaction first. */
async function countByTransaction(type: string): Promise<number[]> {
  const rows = await h.database.sql<{ count: number }>`
    select count(*) as count from event where type = ${type} group by xmin order by min(xmin::text::bigint)`
  return rows.map(({ count }) => count)
}

describe('groups of single events', () => {
  test('events that arrive while a group runs form groups of at most 100 events, one transaction each', async () => {
    const bodies = Array.from({ length: 130 }, () =>
      cloudEvent('game_left', { game_id: newGameId(), creator_id: 1, player_ids: [], actor_id: 1 }),
    )
    const answers = await sendDuringGroup(h, bodies)
    assert.deepEqual(
      answers.map(({ status, body }) => [status, body.id]),
      bodies.map(({ id }) => [202, id]),
    )
    assert.deepEqual(await countByTransaction('game_left'), [100, 30])
  })

  test('the events of a group take effect in the order of their arrival', async () => {
    const gameId = newGameId()
    const bodies = Array.from({ length: 110 }, (_, index) => update(gameId, `Court ${index}`))
    assert.deepEqual(new Set(statuses(await sendDuringGroup(h, bodies))), new Set([202]))
    assert.equal((await readGame(h, gameId))!.place, 'Court 109')
  })

  test('each event gets its own answer: the number of its notifications, `duplicate` or `event_mismatch`', async () => {
    const [anna, bob, chloe] = await makeFourPlayers(h)
    const join = (players: number[]) =>
      cloudEvent('game_joined', { game_id: newGameId(), creator_id: anna, player_ids: players, actor_id: bob })
    const [one, two, other] = [join([anna, bob]), join([anna, bob, chloe]), join([anna, bob])]
    const answers = await sendDuringGroup(h, [one, two, one, { ...other, id: one.id }, two])
    assert.deepEqual(
      answers.map(({ status, body }) => [status, body.status ?? body.code, body.notifications]),
      [
        [202, 'accepted', 1],
        [202, 'accepted', 2],
        [200, 'duplicate', 1],
        [422, 'event_mismatch', undefined],
        [200, 'duplicate', 2],
      ],
    )
    assert.deepEqual(await readTypes(h, anna, chloe), [['game_joined', 'game_joined'], ['game_joined']])
  })

  test('events of 64 concurrent producers are accepted once each, in fewer transactions than events', {
    timeout: 300_000,
  }, async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      await h.database.sql`delete from event where type = 'game_created'`
      const games = Array.from({ length: 8 }, newGameId)
      const bodies = Array.from({ length: 64 }, (_, index) =>
        cloudEvent('game_created', { game_id: games[index % 8], creator_id: 1, player_ids: [] }, AT),
      )
      const answers = await Promise.all(sendEach(h, [...bodies, ...bodies.slice(0, 16)]))
      assert.deepEqual(statuses(answers).toSorted(), [...Array(16).fill(200), ...Array(64).fill(202)])
      const transactions = await countByTransaction('game_created')
      assert.equal(
        transactions.reduce((sum, count) => sum + count, 0),
        64,
      )
      assert.ok(transactions.length < 64, `${transactions.length}`)
    }
  })

  test('two processes that report the same games concurrently in opposite orders do not deadlock', {
    timeout: 300_000,
  }, async () => {
    const other = await anotherApp(h)
    try {
      for (let round = 0; round < ROUNDS; round += 1) {
        const players = round % 10 === 0 ? await makeFourPlayers(h) : []
        const games = Array.from({ length: 20 }, newGameId)
        const join = (game_id: number) =>
          cloudEvent('game_joined', { game_id, creator_id: 1, player_ids: players, actor_id: 900_001 }, AT)
        const [mine, theirs] = [games.map(join), games.toReversed().map(join)]
        const answers = await Promise.all([
          ...sendEach(h, mine),
          ...sendEach(other, [...theirs, ...mine.toReversed()]),
          ...sendEach(h, theirs.toReversed()),
          sendBatch(h, [...theirs, ...mine]),
        ])
        for (const { status, text } of answers) assert.ok(status === 200 || status === 202, text)
        const accepted = answers
          .flatMap(({ body }) => body.results ?? [body])
          .filter(result => result.status === 'accepted')
        assert.equal(accepted.length, 40)
        // Each of the 40 joins causes a notification, and each of the 20 games becomes full.
        for (const types of await readTypes(h, ...players)) assert.equal(types.length, 60)
      }
    } finally {
      await other.close()
    }
  })
})

describe('faults in a group', () => {
  for (const sqlState of ['22003', '23514']) {
    test(`if one event causes SQLSTATE ${sqlState}, only this event fails, and the other events keep their order`, async () => {
      const place = `fails with ${sqlState}`
      await failAtPlace(h, place, sqlState)
      const gameId = newGameId()
      const bodies = Array.from({ length: 30 }, (_, index) => update(gameId, `Court ${index}`))
      bodies[7] = update(newGameId(), place)
      const answers = await sendDuringGroup(h, bodies)
      assert.deepEqual(
        statuses(answers),
        bodies.map((_, index) => (index === 7 ? 500 : 202)),
      )
      assert.equal((await readGame(h, gameId))!.place, 'Court 29')
      assert.equal(await countFailures(h, sqlState), 2)
    })
  }

  test('a group that is the victim of a deadlock runs again, and all its events are accepted', async () => {
    const [low, high] = [newGameId(), newGameId()]
    await Promise.all(sendEach(h, [update(low, 'Court 1'), update(high, 'Court 1')]))
    const bodies = [update(low, 'Court 2'), update(high, 'Court 2'), update(newGameId(), 'Court 2')]
    let answers: ReturnType<typeof sendDuringGroup>
    await h.database.sql.begin(async tx => {
      // The group waits first, so PostgreSQL checks the group first, and cancels it.
      await tx`set local deadlock_timeout = '30s'`
      await tx`select from game where id = ${high} for update`
      answers = sendDuringGroup(h, bodies)
      const waitsForHigh = () => h.database.sql`
        select from pg_locks join game on game.ctid = (page, tuple)::text::tid
        where locktype = 'tuple' and game.id = ${high}`
      await waitUntil(async () => (await waitsForHigh()).length > 0)
      await tx`select from game where id = ${low} for update`
    })
    assert.deepEqual(statuses(await answers!), [202, 202, 202])
    assert.equal((await readGame(h, high))!.place, 'Court 2')
  })

  test('if a group meets a conflict twice, each of its events gets a 503', async () => {
    await failAtPlace(h, 'fails with 40001', '40001')
    const bodies = [update(newGameId(), 'Court 1'), update(newGameId(), 'fails with 40001')]
    const answers = await sendDuringGroup(h, bodies)
    assert.deepEqual(
      answers.map(({ status, headers }) => [status, headers['retry-after']]),
      [
        [503, '5'],
        [503, '5'],
      ],
    )
    assert.equal(await countFailures(h, '40001'), 2)
  })

  test('if the database is lost, each event gets a 503, and events are accepted when it is back', async () => {
    const proxy = await startProxy(new URL(h.database.url))
    const other = await anotherApp(h, { METRICS_TOKEN }, { databaseUrl: proxy.url })
    const bodies = Array.from({ length: 30 }, () => update(newGameId(), 'Court 1'))
    try {
      const answers = await sendDuringGroup(h, bodies, proxy.refuse, other)
      assert.deepEqual(new Set(statuses(answers)), new Set([503]))
      for (const { headers } of answers) assert.equal(headers['retry-after'], '5')
      proxy.accept()
      const again = await Promise.all(sendEach(other, bodies))
      assert.deepEqual(new Set(statuses(again)), new Set([202]))
    } finally {
      await other.close()
      await proxy.close()
    }
  })

  test('an event that has waited 5 s for a group gets a 503, and has no effect', async () => {
    const late = newGameId()
    const first = await withClosedGate(h, async () => {
      const [first] = sendEach(h, [update(newGameId(), AT_GATE)])
      await waitUntil(() => waitsAtGate(h))
      const [second] = sendEach(h, [update(late, 'Court 1')])
      const { status, headers } = await second!
      assert.deepEqual([status, headers['retry-after']], [503, '5'])
      return { first }
    })
    assert.equal((await first.first!).status, 202)
    assert.equal(await readGame(h, late), undefined)
    assert.equal((await h.call('POST', EVENTS, { token: INTAKE_KEY, body: update(late, 'x') })).status, 202)
  })
})

describe('a game that another program has locked', () => {
  /** Runs `work` while a new game is locked. */
  async function withLockedGame<T>(work: (gameId: number) => Promise<T>): Promise<{ gameId: number; result: T }> {
    const gameId = newGameId()
    await Promise.all(sendEach(h, [update(gameId, 'Court 1')]))
    const result = await h.database.sql.begin(async tx => {
      await tx`select from game where id = ${gameId} for update`
      return work(gameId)
    })
    return { gameId, result }
  }

  const waitsForGame = () => waitsForLock(h.database.sql, 'insert into game')
  const readWaitingPids = async () => {
    const rows = await h.database.sql<{ pid: number }>`
      select pid from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock' and query ~ 'insert into game'`
    return rows.map(({ pid }) => pid)
  }
  const sendOthers = () =>
    Promise.all(
      sendEach(
        h,
        Array.from({ length: 10 }, () => update(newGameId(), 'Court 1')),
      ),
    )

  test('the events of all other games are accepted while the lock is held', async () => {
    const { gameId } = await withLockedGame(async gameId => {
      for (let round = 0; round < 3; round += 1) {
        const [locked] = sendEach(h, [update(gameId, `Court ${round}`)])
        await waitUntil(waitsForGame)
        assert.deepEqual(new Set(statuses(await sendOthers())), new Set([202]))
        const { status, headers } = await locked!
        assert.deepEqual([status, headers['retry-after']], [503, '5'])
      }
    })
    assert.equal((await readGame(h, gameId))!.place, 'Court 1')
    assert.deepEqual(statuses(await Promise.all(sendEach(h, [update(gameId, 'Court 9')]))), [202])
    // The game takes part in groups again.
    await h.database.sql`delete from event where type = 'game_updated'`
    await sendDuringGroup(h, [update(gameId, 'Court 10'), update(newGameId(), 'Court 1')])
    assert.deepEqual((await countByTransaction('game_updated')).toSorted(), [1, 2])
  })

  test('the other events of its group are accepted while the lock is held', async () => {
    const others = Array.from({ length: 20 }, newGameId)
    await withLockedGame(async gameId => {
      const answers = await sendDuringGroup(h, [update(gameId, 'x'), ...others.map(other => update(other, 'Court 1'))])
      assert.deepEqual(statuses(answers), [503, ...others.map(() => 202)])
    })
  })

  test('its events take effect in the order of their arrival when the lock is released in time', async () => {
    const { gameId, result } = await withLockedGame(async gameId => {
      const send = (court: number) => sendEach(h, [update(gameId, `Court ${court}`)])[0]!
      const first = send(1)
      await waitUntil(waitsForGame)
      const [before] = await readWaitingPids()
      // After the first attempt, the event is in the second queue and uses another connection.
      await waitUntil(async () => (await readWaitingPids()).some(pid => pid !== before))
      return { answers: [first, ...[2, 3, 4].map(send)] }
    })
    assert.deepEqual(statuses(await Promise.all(result.answers)), [202, 202, 202, 202])
    assert.equal((await readGame(h, gameId))!.place, 'Court 4')
  })

  test('a later event of the game does not overtake the events that wait in the second queue', async () => {
    const send = (gameId: number, place: string) => sendEach(h, [update(gameId, place)])[0]!
    const { gameId, answers } = await withClosedGate(h, async () => {
      const { gameId, result } = await withLockedGame(async gameId => {
        const first = send(gameId, 'Court 2')
        await waitUntil(waitsForGame)
        const [before] = await readWaitingPids()
        await waitUntil(async () => (await readWaitingPids()).some(pid => pid !== before))
        return { answers: [first, send(gameId, AT_GATE)] }
      })
      await result.answers[0]
      await waitUntil(() => waitsAtGate(h))
      const last = send(gameId, 'Court 3')
      await waitUntil(async () => (await countWaiting(h)) === 1)
      return { gameId, answers: [...result.answers, last] }
    })
    assert.deepEqual(statuses(await Promise.all(answers)), [202, 202, 202])
    assert.equal((await readGame(h, gameId))!.place, 'Court 3')
  })

  test('batches with the game get a 503 and do not hold up single events', async () => {
    await withLockedGame(async gameId => {
      const batches = [1, 2, 3, 4].map(court => sendBatch(h, [update(gameId, `Court ${court}`)]))
      await waitUntil(waitsForGame)
      assert.deepEqual(new Set(statuses(await sendOthers())), new Set([202]))
      assert.deepEqual(statuses(await Promise.all(batches)), [503, 503, 503, 503])
    })
  })
})

test('a process that gets SIGTERM while events wait ingests them before it ends', async t => {
  const service = await startService({ ...settingsFor(h.database.url), METRICS_TOKEN })
  t.after(() => service.stop('SIGKILL'))
  const call = async (method: string, path: string, { token, body }: { token: string; body?: unknown }) => {
    const answer = await fetch(service.address + path, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    return { status: answer.status, text: await answer.text() }
  }
  const report = (body: unknown) => call('POST', EVENTS, { token: INTAKE_KEY, body })
  const { answers, stopped } = await withClosedGate(h, async () => {
    const bodies = Array.from({ length: 20 }, () => update(newGameId(), 'Court 1'))
    const answers = [update(newGameId(), AT_GATE), ...bodies].map(report)
    await waitUntil(async () => (await countWaiting({ call })) === bodies.length)
    const stopped = service.stop('SIGTERM')
    await waitUntil(() => service.lines.some(line => line.includes('"stopping"')))
    return { answers, stopped }
  })
  assert.deepEqual(new Set(statuses(await Promise.all(answers))), new Set([202]))
  assert.equal(await stopped, 0)
})

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { connect, type Query } from '../src/db/sql.ts'
import type { AppError } from '../src/errors.ts'
import { harness, INTAKE_KEY } from './support/app.ts'
import { makeUser } from './support/factories.ts'
import { cloudEvent, newGame } from './support/games.ts'

const h = harness()

describe('a statement that could not be finished', () => {
  test('among several that were sent together: its fault is told, and nothing of them stays', async () => {
    const { sql } = h.database
    const user = await makeUser(h)
    const speak = (divisor: number) =>
      sql.begin(tx =>
        Promise.all([
          tx`update app_user set locale = 'en' where id = ${user.id}`,
          tx`select 1 / ${divisor}::integer`,
          tx`update app_user set first_name = 'Zoé' where id = ${user.id}`,
        ]),
      )
    const profile = () => sql`select locale, first_name from app_user where id = ${user.id}`
    const before = await profile()
    await assert.rejects(speak(0), { code: '22012' })
    assert.deepEqual(await profile(), before)
    // The connection knows which statements it has prepared, and which not.
    await speak(1)
    assert.deepEqual(await profile(), [{ locale: 'en', first_name: 'Zoé' }])
  })

  test('what is sent beside it, once its transaction is over, is refused', async () => {
    const { sql } = h.database
    const user = await makeUser(h)
    const over = Promise.withResolvers<void>()
    let late: Promise<unknown> | undefined
    const failed = sql.begin(tx => {
      late = over.promise.then(() => tx`delete from app_user where id = ${user.id}`)
      return Promise.all([tx`select 1 / 0`, late])
    })
    await assert.rejects(failed, { code: '22012' })
    over.resolve()
    await assert.rejects(late!, /over/)
    assert.deepEqual(await sql`select id from app_user where id = ${user.id}`, [{ id: user.id }])
  })

  test('the victim of a deadlock is told to try again, and the other goes on', async () => {
    const { sql } = h.database
    const [one, two] = [await makeUser(h), await makeUser(h)]
    const holds = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const
    const cross = (index: 0 | 1, first: number, second: number) =>
      sql.begin(async tx => {
        await tx`update app_user set locale = 'en' where id = ${first}`
        holds[index].resolve()
        await holds[1 - index]!.promise
        await tx`update app_user set locale = 'en' where id = ${second}`
      })
    const outcomes = await Promise.allSettled([cross(0, one.id, two.id), cross(1, two.id, one.id)])
    const failed = outcomes.filter(outcome => outcome.status === 'rejected')
    assert.equal(failed.length, 1)
    assert.equal((failed[0]!.reason as AppError).code, 'unavailable')
  })

  test('what is prepared and of no use any more: told to try again once, and then it works', async () => {
    const { sql } = h.database
    const own = connect(h.database.url, { connections: 1, max: 1 })
    await sql`create table changing (id integer)`
    const read = (on: Query) => on`select id from changing`
    const ways: [string, (statement: typeof read) => Promise<unknown>][] = [
      ['alone', statement => statement(own)],
      ['in a transaction', statement => own.begin(statement)],
    ]
    for (const [name, run] of ways) {
      for (const spoil of [
        () => sql`alter table changing alter column id type text`,
        () => sql`alter table changing alter column id type integer using id::integer`,
        () => run(on => on`deallocate all`),
      ]) {
        assert.deepEqual(await run(read), [], name)
        await spoil()
        await assert.rejects(run(read), { code: 'unavailable' }, name)
      }
      assert.deepEqual(await run(read), [], name)
    }
    await own.close()
  })

  test('an intake that is stuck holds up no person', async () => {
    const user = await makeUser(h)
    const game_id = newGame()
    const event = cloudEvent('game_joined', { game_id, creator_id: user.id, player_ids: [user.id, 99], actor_id: 99 })
    const report = (id: string) => h.call('POST', '/internal/v1/events', { token: INTAKE_KEY, body: { ...event, id } })
    assert.equal((await report('first')).status, 202)
    const stuck: Promise<{ status: number }>[] = []
    await h.database.sql.begin(async tx => {
      await tx`select id from game where id = ${game_id} for update`
      for (let count = 0; count < 20; count += 1) stuck.push(report(`stuck ${count}`))
      while (h.ctx.intakeSql.pool.waitingCount < 18) await new Promise(resolve => setImmediate(resolve))
      assert.equal(h.ctx.sql.pipeline.stats().waiting, 0)
      assert.equal((await h.call('GET', '/api/v1/auth/me', { token: user.token })).status, 200)
    })
    assert.deepEqual(new Set((await Promise.all(stuck)).map(answer => answer.status)), new Set([202]))
  })
})

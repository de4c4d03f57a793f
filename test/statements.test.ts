import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { connect, type Query } from '../src/db/sql.ts'
import { type Fragment, fragment, NOTHING, prepareStatement } from '../src/db/statement.ts'
import type { AppError } from '../src/errors.ts'
import { harness, INTAKE_KEY } from './support/app.ts'
import { waitsForLock } from './support/database.ts'
import { makeUser } from './support/factories.ts'
import { cloudEvent, newGameId } from './support/games.ts'
import { waitUntil } from './support/wait-until.ts'

const h = harness()

describe('a statement with fragments', () => {
  const statement = (strings: TemplateStringsArray, ...values: unknown[]) => prepareStatement(strings, values)

  test('a statement contains the text of its fragments and binds their values in order', () => {
    const within = (least: number, most: number) => fragment`between ${least} and ${most}`
    const { text, values } =
      statement`select ${fragment`id, name`} from t where a = ${1} and b ${within(2, 3)} limit ${4}`
    assert.equal(text, 'select id, name from t where a = $1 and b between $2 and $3 limit $4')
    assert.deepEqual(values, [1, 2, 3, 4])
  })

  test('a call site has one prepared statement for each combination of fragments', () => {
    const find = (id: number, condition: Fragment) => statement`select from t where id = ${id} ${condition}`
    const isOpen = (since: number) => fragment`and open > ${since}`
    const [open, openLater, all] = [find(1, isOpen(2)), find(3, isOpen(4)), find(5, NOTHING)]
    assert.equal(open.text, 'select from t where id = $1 and open > $2')
    assert.deepEqual([openLater.text, openLater.name, openLater.values], [open.text, open.name, [3, 4]])
    assert.equal(all.text, 'select from t where id = $1 ')
    assert.deepEqual(all.values, [5])
    assert.notEqual(all.name, open.name)
  })

  test('the same fragments at different places give different statements', () => {
    const pair = (one: unknown, two: unknown) => statement`(${one}, ${two})`
    const list = (item: unknown) => fragment`[${item}]`
    const texts = [pair(list(1), list(2)), pair(list(list(1)), 2), pair(1, list(list(2))), pair(1, 2), pair(list(1), 2)]
    assert.deepEqual(
      texts.map(({ text }) => text),
      ['([$1], [$2])', '([[$1]], $2)', '($1, [[$2]])', '($1, $2)', '([$1], $2)'],
    )
  })

  test('a time or a buffer that occurs several times in a statement with fragments is one parameter', () => {
    const run = (start: Date, end: Date, network: Buffer, other: Buffer) =>
      statement`select ${start}, ${network} ${fragment`${end}, ${other}, ${7}`} ${7}`
    const [start, network] = [new Date(1), Buffer.from('n')]
    const same = run(start, new Date(1), network, network)
    assert.deepEqual([same.text, same.values], ['select $1, $2 $1, $2, $3 $4', [start, network, 7, 7]])
    const later = new Date(2)
    const other = Buffer.from('n')
    const different = run(start, later, network, other)
    assert.deepEqual(
      [different.text, different.values],
      ['select $1, $2 $3, $4, $5 $6', [start, network, later, other, 7, 7]],
    )
    assert.notEqual(same.name, different.name)
    assert.equal(run(later, later, other, other).name, same.name)
  })

  test('PostgreSQL runs a statement with a fragment or with an empty fragment', async () => {
    const above = (least: number) => fragment`where n > ${least}`
    const numbers = (condition: Fragment) => h.database.sql`select n from generate_series(1, ${3}) as n ${condition}`
    assert.deepEqual(await numbers(above(2)), [{ n: 3 }])
    assert.equal((await numbers(NOTHING)).length, 3)
  })
})

describe('a statement that fails', () => {
  test('if one of a transaction’s concurrent statements fails, its error is thrown and the transaction rolls back', async () => {
    const { sql } = h.database
    const user = await makeUser(h)
    const update = (divisor: number) =>
      sql.begin(tx =>
        Promise.all([
          tx`update app_user set locale = 'en' where id = ${user.id}`,
          tx`select 1 / ${divisor}::integer`,
          tx`update app_user set first_name = 'Zoé' where id = ${user.id}`,
        ]),
      )
    const readProfile = () => sql`select locale, first_name from app_user where id = ${user.id}`
    const before = await readProfile()
    await assert.rejects(update(0), { code: '22012' })
    assert.deepEqual(await readProfile(), before)
    // The rollback does not invalidate the prepared statements of the connection.
    await update(1)
    assert.deepEqual(await readProfile(), [{ locale: 'en', first_name: 'Zoé' }])
  })

  test('a statement that is sent after its transaction was rolled back throws', async () => {
    const { sql } = h.database
    const user = await makeUser(h)
    const failure = Promise.withResolvers<void>()
    let late: Promise<unknown> | undefined
    const failed = sql.begin(tx => {
      late = failure.promise.then(() => tx`delete from app_user where id = ${user.id}`)
      return Promise.all([tx`select 1 / 0`, late])
    })
    await assert.rejects(failed, { code: '22012' })
    failure.resolve()
    await assert.rejects(late!, /over/)
    assert.deepEqual(await sql`select id from app_user where id = ${user.id}`, [{ id: user.id }])
  })

  test('of two deadlocked transactions, one fails with `unavailable` and the other commits', async () => {
    const { sql } = h.database
    const [one, two] = [await makeUser(h), await makeUser(h)]
    const locked = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const
    const updateBoth = (index: 0 | 1, first: number, second: number) =>
      sql.begin(async tx => {
        await tx`update app_user set locale = 'en' where id = ${first}`
        locked[index].resolve()
        await locked[1 - index]!.promise
        await tx`update app_user set locale = 'en' where id = ${second}`
      })
    const outcomes = await Promise.allSettled([updateBoth(0, one.id, two.id), updateBoth(1, two.id, one.id)])
    const failed = outcomes.filter(outcome => outcome.status === 'rejected')
    assert.equal(failed.length, 1)
    assert.equal((failed[0]!.reason as AppError).code, 'unavailable')
  })

  test('a timeout of PostgreSQL, a full disk and a refused login fail with `unavailable`', async () => {
    for (const code of ['25P03', '25P04', '28000', '28P01', '53100', '55P03', '57014']) {
      const failed = h.database.sql.begin(async tx => {
        await tx`select set_config('test.code', ${code}, true)`
        await tx`do $$ begin raise exception using errcode = current_setting('test.code'); end $$`
      })
      await assert.rejects(failed, { code: 'unavailable' }, code)
    }
  })

  test('a prepared statement that became stale fails with `unavailable` once, and succeeds when it is repeated', async () => {
    const { sql } = h.database
    const other = connect(h.database.url, { connections: 1, max: 1 })
    await sql`create table changing (id integer)`
    const read = (on: Query) => on`select id from changing`
    const ways: [string, (statement: typeof read) => Promise<unknown>][] = [
      ['outside a transaction', statement => statement(other)],
      ['in a transaction', statement => other.begin(statement)],
    ]
    for (const [name, run] of ways) {
      for (const makeStale of [
        () => sql`alter table changing alter column id type text`,
        () => sql`alter table changing alter column id type integer using id::integer`,
        () => run(on => on`deallocate all`),
      ]) {
        assert.deepEqual(await run(read), [], name)
        await makeStale()
        await assert.rejects(run(read), { code: 'unavailable' }, name)
      }
      assert.deepEqual(await run(read), [], name)
    }
    await other.close()
  })

  test('a statement, an idle transaction, and a lock that the intake waits for have limits', async () => {
    const names = ['idle_in_transaction_session_timeout', 'lock_timeout', 'statement_timeout']
    const read = async (sql: Query) => {
      const rows = await sql<{ setting: string }>`
        select setting from pg_settings where name = any(${names}::text[]) order by name`
      return rows.map(({ setting }) => Number(setting))
    }
    assert.deepEqual(await read(h.ctx.sql), [60_000, 0, 30_000])
    assert.deepEqual(await read(h.ctx.readSql), [60_000, 0, 30_000])
    assert.deepEqual(await h.ctx.sql.begin(read), [60_000, 0, 30_000])
    assert.deepEqual(await h.ctx.intakeSql.begin(read), [60_000, 1_000, 30_000])
  })

  test('event reports that wait for a lock do not delay the requests of users', async () => {
    const user = await makeUser(h)
    const game_id = newGameId()
    const event = cloudEvent('game_joined', { game_id, creator_id: user.id, player_ids: [user.id, 99], actor_id: 99 })
    const report = (id: string) => h.call('POST', '/internal/v1/events', { token: INTAKE_KEY, body: { ...event, id } })
    assert.equal((await report('first')).status, 202)
    const waiting: Promise<{ status: number }>[] = []
    await h.database.sql.begin(async tx => {
      await tx`select id from game where id = ${game_id} for update`
      for (let count = 0; count < 20; count += 1) waiting.push(report(`waiting ${count}`))
      await waitUntil(() => waitsForLock(h.database.sql, 'insert into game'))
      assert.equal(h.ctx.sql.pipeline.stats().waiting, 0)
      assert.equal((await h.call('GET', '/api/v1/auth/me', { token: user.token })).status, 200)
    })
    assert.deepEqual(new Set((await Promise.all(waiting)).map(answer => answer.status)), new Set([202]))
  })
})

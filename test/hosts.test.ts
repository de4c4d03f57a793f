import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { describe, test } from 'node:test'
import { migrate } from '../src/db/migrate.ts'
import { parsePostgresUrl } from '../src/db/postgres-url.ts'
import { connect } from '../src/db/sql.ts'
import { AppError } from '../src/errors.ts'
import { testDatabase } from './support/database.ts'

describe('a URL with several hosts', () => {
  const urls: [string, { host: string; port: number }[], string][] = [
    ['postgres://u:p@one/db', [{ host: 'one', port: 5432 }], 'postgres://u:p@one/db'],
    [
      'postgres://u:p%40:,!$w@one,two:5433/db',
      [
        { host: 'one', port: 5432 },
        { host: 'two', port: 5433 },
      ],
      'postgres://u:p%40:,!$w@one/db',
    ],
    ['postgres:///db?host=/run/postgresql', [{ host: '', port: 5432 }], 'postgres:///db?host=/run/postgresql'],
    [
      'postgres://u:p@one:5433,two/db?sslmode=require',
      [
        { host: 'one', port: 5433 },
        { host: 'two', port: 5432 },
      ],
      'postgres://u:p@one:5433/db?sslmode=require',
    ],
    [
      'postgresql://[::1]:5433,127.0.0.1/db',
      [
        { host: '::1', port: 5433 },
        { host: '127.0.0.1', port: 5432 },
      ],
      'postgresql://[::1]:5433/db',
    ],
  ]
  for (const [url, hosts, first] of urls) {
    test(`parsePostgresUrl finds ${hosts.length} host(s) in ${url}`, () =>
      assert.deepEqual(parsePostgresUrl(url), {
        hosts,
        firstHostUrl: first,
        requiresScram: false,
        schema: 'courtside',
      }))
  }

  for (const url of ['mysql://one/db', 'postgres://one:54x2/db', 'postgres://u:p/w@one/db', 'postgres://one, two/db']) {
    test(`parsePostgresUrl refuses ${url} with an error that does not repeat the URL`, () =>
      assert.throws(() => parsePostgresUrl(url), /^Error: must be a postgres:\/\/ URL$/))
  }

  test('single statements, transactions and migrations use the first host that answers', async () => {
    const database = await testDatabase()
    const url = database.url.replace('@127.0.0.1:', '@127.0.0.1:1,127.0.0.1:2,127.0.0.1:')
    assert.notEqual(url, database.url)
    assert.deepEqual(await migrate(url), [])
    const sql = connect(url)
    assert.deepEqual(await sql`select 1 as one`, [{ one: 1 }])
    assert.deepEqual(await sql.begin(tx => tx`select 2 as two`), [{ two: 2 }])
    await sql.close()
    await database.drop()
  })

  test('a host is skipped if it accepts the connection but answers no statement', { timeout: 20_000 }, async () => {
    const database = await testDatabase()
    // The PostgreSQL messages AuthenticationOk and ReadyForQuery.
    const welcome = Buffer.from('R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I', 'latin1')
    const silentServer = createServer(socket => {
      socket.on('error', () => {}).once('data', () => socket.write(welcome))
    }).listen(0, '127.0.0.1')
    await once(silentServer, 'listening')
    const { port } = silentServer.address() as AddressInfo
    const sql = connect(database.url.replace('@127.0.0.1:', `@127.0.0.1:${port},127.0.0.1:`))
    assert.deepEqual(await sql`select 1 as one`, [{ one: 1 }])
    await sql.close()
    await once(silentServer.close(), 'close')
    await database.drop()
  })

  test('if no host answers, a statement fails with the error code unavailable', async () => {
    const sql = connect('postgres://nobody@127.0.0.1:1,127.0.0.1:2/none')
    await assert.rejects(sql`select 1`, (error: AppError) => error instanceof AppError && error.code === 'unavailable')
    await sql.close()
  })
})

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { pino } from 'pino'
import { createListener, type Listener } from '../src/db/listener.ts'
import { onChannel } from '../src/db/own-schema.ts'
import { type TestDatabase, testDatabase } from './support/database.ts'
import { startProxy } from './support/proxy.ts'
import { waitUntil } from './support/wait-until.ts'

const log = pino({ level: 'silent' })

/** Waits until the listener next connects (`onUp`) or next loses its connection (`onDown`). */
function waitForNext(listener: Listener, change: 'onUp' | 'onDown'): Promise<void> {
  return new Promise(resolve => {
    listener[change](resolve)
  })
}

describe('the listener', { timeout: 60_000 }, () => {
  let database: TestDatabase
  before(async () => {
    database = await testDatabase()
  })
  after(() => database.drop())

  test('the listener receives the NOTIFY messages of its channels, and reconnects if its connection is terminated', async () => {
    const listener = createListener(database.url, log)
    const received: string[] = []
    const last = Promise.withResolvers<void>()
    listener.on('one', payload => received.push(`one ${payload}`))
    listener.on('two', payload => received.push(`two ${payload}`))
    listener.on('end', () => last.resolve())
    const { sql } = database
    assert.equal(listener.isUp(), false)
    let up = waitForNext(listener, 'onUp')
    listener.start()
    await up
    assert.equal(listener.isUp(), true)
    await sql`select pg_notify(${onChannel('one')}, 'a'), pg_notify(${onChannel('two')}, 'b'), pg_notify('three', 'c')`
    // A server process that is terminated immediately would not deliver these messages.
    await waitUntil(() => received.length === 2)
    const down = waitForNext(listener, 'onDown')
    up = waitForNext(listener, 'onUp')
    await sql`select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and application_name = 'courtside-listener'`
    await down
    await up
    await sql`select pg_notify(${onChannel('one')}, 'd'), pg_notify(${onChannel('end')}, '')`
    await last.promise
    assert.deepEqual(received, ['one a', 'two b', 'one d'])
    await listener.close()
    assert.equal(listener.isUp(), false)
  })

  test('if its connection becomes silent, the listener notices the silence within 5 s and reconnects', async () => {
    const { url, setSilent, close } = await startProxy(new URL(database.url))
    const listener = createListener(url, log)
    let up = waitForNext(listener, 'onUp')
    listener.start()
    await up
    up = waitForNext(listener, 'onUp')
    const since = performance.now()
    setSilent(true)
    await waitForNext(listener, 'onDown')
    assert.ok(performance.now() - since < 5_000)
    setSilent(false)
    await up
    await listener.close()
    await close()
  })

  test('if its server becomes a standby, the listener closes the connection and reconnects to a primary', async () => {
    let isStandby = false
    // The row with the only column `standby` of the type boolean.
    const setStandby = (reply: string) =>
      isStandby ? reply.replace(/(standby.*D\0\0\0\x0b\0\x01\0\0\0\x01)f/s, '$1t') : reply
    const { url, close } = await startProxy(new URL(database.url), setStandby)
    const listener = createListener(url, log)
    let up = waitForNext(listener, 'onUp')
    listener.start()
    await up
    up = waitForNext(listener, 'onUp')
    const down = waitForNext(listener, 'onDown')
    isStandby = true
    await down
    isStandby = false
    await up
    await listener.close()
    await close()
  })

  test('the listener closes within 2 s, even if it cannot connect, has just started or was never started', async () => {
    const { url, setSilent, close } = await startProxy(new URL(database.url))
    setSilent(true)
    // The proxy at the first address never replies. No server listens at the second address. The third address works.
    for (const target of [url, 'postgres://nobody@127.0.0.1:9/nothing', database.url]) {
      const listener = createListener(target, log)
      listener.start()
      const since = performance.now()
      await listener.close()
      assert.ok(performance.now() - since < 2_000, target)
    }
    await createListener(url, log).close()
    await close()
  })
})

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { pino } from 'pino'
import { createListener, type Listener } from '../src/db/listener.ts'
import { type TestDatabase, testDatabase } from './support/database.ts'

const log = pino({ level: 'silent' })

/** Resolves at the next change of that kind. */
function next(listener: Listener, change: 'onUp' | 'onDown'): Promise<void> {
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

  /** A way to the database that can go dead without a word, as when a cable is cut. */
  async function wire() {
    const sockets = new Set<Socket>()
    const target = new URL(database.url)
    let dead = false
    const server = createServer(near => {
      const far = connect(Number(target.port || 5432), target.hostname)
      for (const [from, to] of [
        [near, far],
        [far, near],
      ] as const) {
        sockets.add(from)
        from.on('data', bytes => dead || to.write(bytes))
        from.on('close', () => dead || to.destroy())
        from.on('error', () => {})
      }
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const url = Object.assign(new URL(database.url), {
      hostname: '127.0.0.1',
      port: String((server.address() as AddressInfo).port),
    }).href
    return {
      url,
      cut: (now: boolean) => {
        dead = now
      },
      async close() {
        for (const socket of sockets) socket.destroy()
        server.close()
        await once(server, 'close')
      },
    }
  }

  test('hears of its channels what others say, and comes back after its session was ended', async () => {
    const listener = createListener(database.url, log)
    const heard: string[] = []
    const end = Promise.withResolvers<void>()
    listener.on('one', payload => heard.push(`one ${payload}`))
    listener.on('two', payload => heard.push(`two ${payload}`))
    listener.on('end', () => end.resolve())
    const { sql } = database
    assert.equal(listener.isUp(), false)
    let up = next(listener, 'onUp')
    listener.start()
    await up
    assert.equal(listener.isUp(), true)
    await sql`select pg_notify('one', 'a'), pg_notify('two', 'b'), pg_notify('three', 'c')`
    const down = next(listener, 'onDown')
    up = next(listener, 'onUp')
    await sql`select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and application_name = 'courtside-listener'`
    await down
    await up
    await sql`select pg_notify('one', 'd'), pg_notify('end', '')`
    await end.promise
    assert.deepEqual(heard, ['one a', 'two b', 'one d'])
    await listener.close()
    assert.equal(listener.isUp(), false)
  })

  test('knows within 5 s that its link is dead, and comes back', async () => {
    const { url, cut, close } = await wire()
    const listener = createListener(url, log)
    let up = next(listener, 'onUp')
    listener.start()
    await up
    up = next(listener, 'onUp')
    const since = performance.now()
    cut(true)
    await next(listener, 'onDown')
    assert.ok(performance.now() - since < 5_000)
    cut(false)
    await up
    await listener.close()
    await close()
  })

  test('closes at once in whatever state: connecting in vain, just begun, or never started', async () => {
    const { url, cut, close } = await wire()
    cut(true)
    // The first never gets an answer, at the second nobody is.
    for (const vain of [url, 'postgres://nobody@127.0.0.1:9/nothing', database.url]) {
      const listener = createListener(vain, log)
      listener.start()
      const since = performance.now()
      await listener.close()
      assert.ok(performance.now() - since < 2_000, vain)
    }
    await createListener(url, log).close()
    await close()
  })
})

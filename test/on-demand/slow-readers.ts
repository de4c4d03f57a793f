import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { settingsFor } from '../support/app.ts'
import { type TestDatabase, testDatabase } from '../support/database.ts'
import { type Service, startService } from '../support/service.ts'

const COUNT = 2_500
const MAX_GROWTH_MIB = 250

/**
 * What each of the sockets sends, and the time after which the service has closed all sockets. The answers of the first
 * attack are larger than the buffers of the operating system. The second attack pipelines too many requests. In the
 * third attack, the operating system buffers all answers. The service then sees only idle connections, and closes them
 * after the time for idle connections.
 */
const ATTACKS = [
  { path: '/docs/swagger-ui-bundle.js', requests: 20, goneAfterSeconds: 60 },
  { path: '/docs', requests: 100, goneAfterSeconds: 60 },
  { path: '/docs', requests: 20, goneAfterSeconds: 80 },
]

describe(`${COUNT} sockets that do not read`, { timeout: 900_000 }, () => {
  let database: TestDatabase
  let service: Service
  before(async () => {
    database = await testDatabase()
    service = await startService(settingsFor(database.url))
  })
  after(async () => {
    await service.stop()
    await database.drop()
  })

  for (const { path, requests, goneAfterSeconds } of ATTACKS) {
    test(`sockets with ${requests} requests for ${path} each cost at most ${MAX_GROWTH_MIB} MiB and are gone after ${goneAfterSeconds} s`, async () => {
      await (await fetch(service.address + path)).arrayBuffer()
      const base = { rss: await readRssMib(), files: await countOpenFiles() }
      const sockets = await attack(path, requests)
      let peak = 0
      for (let second = 0; second < goneAfterSeconds; second += 1) {
        peak = Math.max(peak, await readRssMib())
        await delay(1_000)
      }
      const left = (await countOpenFiles()) - base.files
      assert.equal((await fetch(`${service.address}/healthz`)).status, 200)
      for (const socket of sockets) socket.destroy()
      console.log({ path, requests, base, peak, left })
      assert.ok(peak - base.rss <= MAX_GROWTH_MIB, `${peak} - ${base.rss} MiB`)
      // A few files belong to connections of other kinds, such as the one of `fetch`.
      assert.ok(left <= 20, `${left} sockets are left`)
    })
  }

  async function attack(path: string, requests: number): Promise<Socket[]> {
    const { port } = new URL(service.address)
    const bytes = `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(requests)
    const sockets: Socket[] = []
    for (let count = 0; count < COUNT; count += 1) {
      const socket = connect(Number(port), '127.0.0.1')
      socket.on('error', () => {})
      socket.pause()
      socket.write(bytes)
      sockets.push(socket)
      if (count % 50 === 0) await delay(20)
    }
    return sockets
  }

  async function readRssMib(): Promise<number> {
    const status = await readFile(`/proc/${service.process.pid}/status`, 'utf8')
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)![1]) / 1024
  }

  async function countOpenFiles(): Promise<number> {
    return (await readdir(`/proc/${service.process.pid}/fd`)).length
  }
})

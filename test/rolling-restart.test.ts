import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { settingsFor } from './support/app.ts'
import { type TestDatabase, testDatabase } from './support/database.ts'
import { openStream } from './support/event-stream.ts'
import { signUpByMail } from './support/load.ts'
import { findFreePort, isInstalled, REVERSE_PROXIES, startReverseProxy } from './support/reverse-proxies.ts'
import { type Service, startService } from './support/service.ts'
import { smtpServer } from './support/smtp.ts'
import { waitUntil } from './support/wait-until.ts'

const RESTARTS = 6
const CONNECTIONS = 16
const PAUSE_MS = 25

type Load = {
  answers: number
  /** The number of requests that got no 200, by request and outcome. */
  lost: Record<string, number>
  stop(): Promise<void>
}

/** Sends a request. @returns the status, or the code of the error if the connection broke */
function send(url: string, method: string, agent: Agent, headers: Record<string, string>): Promise<number | string> {
  return new Promise(resolve => {
    const sent = request(url, { method, agent, headers }, response => {
      response.on('error', error => resolve(error.message))
      response.on('end', () => resolve(response.statusCode!))
      response.resume()
    })
    sent.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    sent.end(method === 'POST' ? '{"ids": [1]}' : undefined)
  })
}

/** Sends GET and POST requests on 16 connections until `stop` is called. */
function startLoad(address: string, token: string): Load {
  const load: Load = { answers: 0, lost: {}, stop: async () => {} }
  let isRunning = true
  async function run(method: string, path: string): Promise<void> {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const headers = {
      authorization: `Bearer ${token}`,
      ...(method === 'POST' && { 'content-type': 'application/json' }),
    }
    while (isRunning) {
      const outcome = await send(address + path, method, agent, headers)
      load.answers += 1
      const key = `${method}: ${outcome}`
      if (outcome !== 200) load.lost[key] = (load.lost[key] ?? 0) + 1
      await delay(PAUSE_MS)
    }
    agent.destroy()
  }
  const runs = Array.from({ length: CONNECTIONS / 2 }, () => [
    run('GET', '/api/v1/notifications'),
    run('POST', '/api/v1/notifications/read-all'),
  ])
  load.stop = async () => {
    isRunning = false
    await Promise.all(runs.flat())
  }
  return load
}

describe('the files of reverse proxies in deploy/, in front of two processes', { timeout: 300_000 }, () => {
  const installed = REVERSE_PROXIES.filter(({ program }) => process.env.CI || isInstalled(program))
  const proxies = new Map<string, Awaited<ReturnType<typeof startReverseProxy>>>()
  const services: Service[] = []
  let database: TestDatabase
  let smtp: Awaited<ReturnType<typeof smtpServer>>
  let folder: string
  let token: string
  let ports: [number, number]

  const start = (index: number) =>
    startService({
      ...settingsFor(database.url, smtp.url),
      PORT: String(ports[index]),
      TRUST_PROXY: '127.0.0.1',
      STOP_DELAY: '5s',
      LOG_LEVEL: 'info',
    })

  before(async () => {
    database = await testDatabase()
    smtp = await smtpServer()
    folder = await mkdtemp(join(tmpdir(), 'courtside-proxies-'))
    ports = [await findFreePort(), await findFreePort()]
    services.push(...(await Promise.all([start(0), start(1)])))
    token = await signUpByMail(services, smtp, 'reader@example.com')
    for (const kind of installed) {
      proxies.set(kind.program, await startReverseProxy(kind, ports, join(folder, kind.program)))
    }
  })
  after(async () => {
    await Promise.all([...proxies.values()].map(proxy => proxy.stop()))
    await Promise.all(services.map(service => service.stop('SIGKILL')))
    await smtp?.close()
    await database?.drop()
    await rm(folder, { recursive: true, force: true })
  })

  for (const { program, debianPackage, file } of REVERSE_PROXIES) {
    const skip =
      !process.env.CI && !isInstalled(program) && `${program} is not installed (apt-get install ${debianPackage})`

    test(`deploy/${file} forwards events of the live stream immediately`, { skip }, async () => {
      const stream = await openStream(proxies.get(program)!.address, token)
      assert.equal((await stream.next()).event, 'sync')
      stream.close()
    })

    test(`deploy/${file} replaces the address that a client claims to have`, { skip }, async () => {
      const email = `${program}@example.com`
      const answer = await fetch(`${proxies.get(program)!.address}/api/v1/auth/verify-otp`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'x-forwarded-for': '203.0.113.9',
          forwarded: 'for=203.0.113.9',
          'x-real-ip': '203.0.113.9',
        },
        body: JSON.stringify({ email, code: '0000' }),
      })
      assert.equal(answer.status, 422)
      const id = answer.headers.get('x-request-id')!
      const find = () =>
        services.flatMap(({ lines }) => lines).find(line => line.includes(id) && line.includes('"audit"'))
      await waitUntil(() => find() !== undefined)
      assert.equal(JSON.parse(find()!).client, '127.0.0.1')
    })

    test(`deploy/${file} refuses requests to the intake and to the metrics`, { skip }, async () => {
      const { address } = proxies.get(program)!
      const plain = ['/internal/v1/events', '/internal', '/metrics']
      for (const path of [...plain, '/%6detrics', '/%69nternal', '/%69nternal/v1/events', '/internal%2Fv1/events']) {
        const answer = await fetch(address + path)
        assert.equal(answer.status, 404, path)
        assert.equal(answer.headers.get('x-request-id'), null, `${path} reached the service`)
      }
    })
  }

  test(`six restarts under 16 connections lose no request behind nginx, HAProxy and Caddy`, {
    skip: proxies.size === 0 && installed.length === 0 && 'no reverse proxy is installed',
  }, async () => {
    const loads = new Map([...proxies].map(([program, { address }]) => [program, startLoad(address, token)]))
    for (let restart = 0; restart < RESTARTS; restart += 1) {
      const index = restart % 2
      assert.equal(await services[index]!.stop('SIGTERM'), 0)
      services[index] = await start(index)
    }
    for (const [program, load] of loads) {
      await load.stop()
      assert.ok(load.answers > 1_000, `${program}: ${load.answers} answers`)
      assert.deepEqual(load.lost, {}, `${program} lost some of ${load.answers} requests: ${JSON.stringify(load.lost)}`)
    }
  })
})

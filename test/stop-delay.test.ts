import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, get, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { INTAKE_KEY, settingsFor } from './support/app.ts'
import { testDatabase } from './support/database.ts'
import { openStream } from './support/event-stream.ts'
import { signUpByMail } from './support/load.ts'
import { startService } from './support/service.ts'
import { smtpServer } from './support/smtp.ts'
import { waitUntil } from './support/wait-until.ts'

/** Sends a GET request. If the connection is refused, rejects with the error of the connection. */
async function send(url: string, agent: Agent): Promise<{ status: number; connection: string; body: string }> {
  const [response] = (await once(get(url, { agent }), 'response')) as [IncomingMessage]
  return { status: response.statusCode!, connection: response.headers.connection!, body: await text(response) }
}

test('during STOP_DELAY, /readyz answers 503, all other requests are served, and each answer closes its connection', async t => {
  const database = await testDatabase()
  const smtp = await smtpServer()
  const service = await startService({ ...settingsFor(database.url, smtp.url), STOP_DELAY: '6s' })
  const agents = Array.from({ length: 3 }, () => new Agent({ keepAlive: true, maxSockets: 1 }))
  t.after(async () => {
    for (const agent of agents) agent.destroy()
    await service.stop('SIGKILL')
    await smtp.close()
    await database.drop()
  })
  const [opened, fresh, probe] = agents as [Agent, Agent, Agent]
  const token = await signUpByMail([service], smtp, 'reader@example.com')
  const stream = await openStream(service.address, token)
  assert.equal((await stream.next()).event, 'sync')
  assert.deepEqual(
    [
      (await send(`${service.address}/readyz`, opened)).status,
      (await send(`${service.address}/docs`, opened)).connection,
    ],
    [200, 'keep-alive'],
  )

  const exited = once(service.process, 'exit')
  service.process.kill('SIGTERM')
  await waitUntil(async () => (await send(`${service.address}/readyz`, probe)).status === 503)
  const notReady = await send(`${service.address}/readyz`, probe)
  assert.deepEqual([notReady.status, JSON.parse(notReady.body).code], [503, 'unavailable'])
  for (const path of ['/healthz', '/api/v1/game-levels', '/']) {
    for (const agent of [opened, fresh]) {
      const answer = await send(service.address + path, agent)
      assert.deepEqual([answer.status, answer.connection], [200, 'close'], path)
    }
  }
  const unknown = await send(`${service.address}/nothing`, fresh)
  assert.deepEqual([unknown.status, unknown.connection], [404, 'close'])
  const reported = await fetch(`${service.address}/internal/v1/events`, {
    method: 'POST',
    headers: { authorization: `Bearer ${INTAKE_KEY}`, 'content-type': 'application/cloudevents-batch+json' },
    body: '[]',
  })
  assert.equal(reported.status, 200)
  assert.equal(stream.response.closed, false)

  assert.deepEqual(await exited, [0, null])
  assert.equal(await stream.ended(), true)
  assert.deepEqual(
    service.lines.filter(line => line.includes('unavailable')),
    [],
  )
  await assert.rejects(send(`${service.address}/healthz`, fresh), { code: 'ECONNREFUSED' })
})

test('a second signal that comes more than a second later ends the process immediately, with exit code 1', async t => {
  const database = await testDatabase()
  t.after(() => database.drop())
  const service = await startService({ ...settingsFor(database.url), STOP_DELAY: '60s' })
  const exited = once(service.process, 'exit')
  service.process.kill('SIGINT')
  await waitUntil(() => service.lines.some(line => line.includes('"stopping"')))
  service.process.kill('SIGINT')
  // npm forwards a signal that this process has also received itself, so the second of two quick signals has no effect.
  assert.equal((await fetch(`${service.address}/healthz`)).status, 200)
  assert.equal((await fetch(`${service.address}/healthz`)).status, 200)
  const timer = setInterval(() => service.process.kill('SIGINT'), 1_500)
  assert.deepEqual(await exited, [1, null])
  clearInterval(timer)
})

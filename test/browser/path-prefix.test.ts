import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, request as forward } from 'node:http'
import type { AddressInfo } from 'node:net'
import { suite, test } from 'node:test'
import { skip, stage } from '../support/browser.ts'

const s = stage()

/** Starts a proxy that serves the service below `/courtside/`, and nothing elsewhere. */
async function startPrefixProxy() {
  const server = createServer((incoming, answer) => {
    const { pathname, search } = new URL(incoming.url!, 'http://proxy')
    if (!pathname.startsWith('/courtside/')) return answer.writeHead(404).end()
    const target = new URL(pathname.slice('/courtside'.length) + search, s.service.address)
    const { method, headers } = incoming
    const outgoing = forward(target, { method, headers }, response => {
      answer.writeHead(response.statusCode!, response.headers)
      response.pipe(answer)
    })
    incoming.pipe(outgoing)
    answer.on('close', () => outgoing.destroy())
    return outgoing.on('error', () => answer.destroy())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { server, address: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

suite('behind a proxy that adds a path', { skip, timeout: 120_000 }, () => {
  test('the page and the reference load all their files and call the API below the path', async t => {
    const { server, address } = await startPrefixProxy()
    t.after(() => {
      server.closeAllConnections()
      server.close()
    })
    const page = await s.visit()
    await page.goto(`${address}/courtside/`)
    await page
      .getByLabel(/e-mail/i)
      .first()
      .waitFor()
    await page.getByRole('link', { name: /API/ }).first().click()
    await page.locator('.opblock').first().waitFor()
    const operation = page.locator('.opblock[id$="-listGameLevels"]')
    await operation.locator('.opblock-summary-control').click()
    await operation.getByRole('button', { name: 'Try it out' }).click()
    await operation.getByRole('button', { name: 'Execute' }).click()
    const answer = operation.locator('.live-responses-table .response')
    await answer.waitFor()
    assert.match((await answer.textContent())!, /^200/)
    assert.deepEqual(s.complaints, [])
  })
})

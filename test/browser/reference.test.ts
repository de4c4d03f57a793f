import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { BrowserContextOptions, Locator, Page, Request } from 'playwright-core'
import { skip, stage } from '../support/browser.ts'

const s = stage()

/** Opens `/docs` and waits for the operations. @returns the page, and a list that records all of its requests */
async function openReference(options?: BrowserContextOptions): Promise<{ page: Page; requests: Request[] }> {
  const page = await s.visit(options)
  const requests: Request[] = []
  page.context().on('request', request => requests.push(request))
  await page.addInitScript(
    `addEventListener('securitypolicyviolation', event => console.error(event.violatedDirective))`,
  )
  await page.goto('/docs')
  await page.locator('.opblock').first().waitFor()
  return { page, requests }
}

/** Opens an operation, sends its request and waits for the answer. @returns the element that shows the answer */
async function tryOperation(page: Page, operationId: string): Promise<Locator> {
  const operation = page.locator(`.opblock[id$="-${operationId}"]`)
  await operation.locator('.opblock-summary-control').click()
  await operation.getByRole('button', { name: 'Try it out' }).click()
  await operation.getByRole('button', { name: 'Execute' }).click()
  const answer = operation.locator('.live-responses-table .response')
  await answer.waitFor()
  return answer
}

/** Asserts that the page reported no error or policy violation, and requested nothing from another origin. */
function assertNoFault(requests: Request[]): void {
  assert.deepEqual(s.complaints, [])
  const urls = requests.map(request => request.url())
  assert.ok(urls.length >= 5, urls.join('\n'))
  const foreign = urls.filter(url => new URL(url).origin !== s.service.address && !url.startsWith('data:'))
  assert.deepEqual(foreign, [])
}

suite('the reference page in a browser', { skip, timeout: 120_000 }, () => {
  test('the reference page shows every operation, without an error or a request to another origin', async () => {
    const { page, requests } = await openReference()
    const document = (await (await fetch(`${s.service.address}/api/v1/openapi.json`)).json()) as {
      paths: Record<string, Record<string, { operationId: string; summary: string }>>
    }
    const operations = Object.values(document.paths).flatMap(methods => Object.values(methods))
    assert.ok(operations.length >= 15)
    assert.equal(await page.locator('.opblock').count(), operations.length)
    for (const { operationId, summary } of operations) {
      const shown = await page.locator(`.opblock[id$="-${operationId}"]`).textContent()
      assert.ok(shown?.includes(summary), operationId)
    }
    assert.equal(await page.title(), 'Courtside API reference')
    assert.equal(await page.evaluate('document.documentElement.lang'), 'en')
    assertNoFault(requests)
  })

  test('"Try it out" sends GET /api/v1/game-levels and shows the answer', async () => {
    const { page, requests } = await openReference()
    const answer = await tryOperation(page, 'listGameLevels')
    const path = '/api/v1/game-levels'
    assert.ok(requests.some(request => request.url() === s.service.address + path))
    assert.equal(await answer.locator('.response-col_status').textContent(), '200')
    const shown = await answer.locator('.response-col_description pre').first().textContent()
    const sent = await fetch(s.service.address + path, { headers: { 'accept-language': 'fr-FR' } })
    assert.deepEqual(JSON.parse(shown!), await sent.json())
    assertNoFault(requests)
  })

  test('"Try it out" sends the token that the user has entered under "Authorize"', async () => {
    const { page, requests } = await openReference()
    await page.getByRole('button', { name: 'Authorize' }).first().click()
    await page.getByLabel('auth-bearer-value').first().fill('not-a-token')
    await page.getByRole('button', { name: 'Apply credentials' }).first().click()
    await page.getByRole('button', { name: 'Close' }).first().click()
    const answer = await tryOperation(page, 'getMe')
    const sent = requests.find(request => request.url().endsWith('/auth/me'))
    assert.equal(sent?.headers().authorization, 'Bearer not-a-token')
    assert.match((await answer.locator('.response-col_status').textContent())!, /^401/)
    // The browser itself logs each 401 answer.
    assert.deepEqual(
      s.complaints.splice(0).filter(text => !text.includes('status of 401')),
      [],
    )
  })

  test('the reference page fits a phone of 320 px and follows the browser’s colour scheme', async () => {
    const { page, requests } = await openReference({
      viewport: { width: 320, height: 640 },
      isMobile: true,
      colorScheme: 'dark',
    })
    const background = () => page.evaluate<string>('getComputedStyle(document.documentElement).backgroundColor')
    assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 320)
    const dark = await background()
    await page.emulateMedia({ colorScheme: 'light' })
    await page.locator('html:not(.dark-mode)').waitFor()
    assert.notEqual(await background(), dark)
    assertNoFault(requests)
  })
})

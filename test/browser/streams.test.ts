import assert from 'node:assert/strict'
import { afterEach, suite, test } from 'node:test'
import type { Page } from 'playwright-core'
import { notify, serveSite, signUp, skip, stage, storeNotifications, waitForStreams } from '../support/browser.ts'

// Playwright turns off the back/forward cache, which keeps a page that the user has left.
const s = stage({ launch: { ignoreDefaultArgs: ['--disable-back-forward-cache'] } })

const INBOX = '<courtside-inbox></courtside-inbox>'

let visitor: Page | undefined

/** Signs up a user in a new browser context whose pages below `/site/` show inboxes. */
async function startSite(email: string, inboxes = 1): Promise<Page> {
  const page = await s.visit()
  visitor = page
  await serveSite(page, () => ({ body: INBOX.repeat(inboxes) }))
  await signUp(page, email)
  return page
}

/** Waits until each inbox of the pages shows the count. */
async function waitForCounts(pages: Page[], count: number): Promise<void> {
  for (const page of pages) {
    const inboxes = page.locator('courtside-inbox')
    const total = await inboxes.count()
    for (let index = 0; index < total; index += 1) {
      await inboxes
        .nth(index)
        .getByRole('button', { name: `Notifications, ${count} non lues` })
        .waitFor()
    }
  }
}

suite('the streams of inboxes', { skip, timeout: 180_000 }, () => {
  afterEach(async () => {
    await visitor?.context().close()
    await waitForStreams(s, 0)
  })

  for (const locks of ['with', 'without'] as const) {
    test(`ten pages with an inbox, visited one after another ${locks} Web Locks, never have two streams`, async () => {
      const email = `ten.pages.${locks}@example.com`
      const page = await startSite(email)
      // A page of an origin without TLS has no Web Locks.
      if (locks === 'without') await page.addInitScript('delete Navigator.prototype.locks')
      await page.addInitScript('addEventListener("pageshow", event => { window.isRestored = event.persisted })')
      await storeNotifications(s, email, 3)
      for (let index = 1; index <= 10; index += 1) {
        const startedAt = performance.now()
        await page.goto(`/site/${index}`)
        await waitForCounts([page], 3)
        // Over HTTP/1.1, a page that waits for a stream of a page in the cache takes 25 s.
        assert.ok(performance.now() - startedAt < 15_000, `page ${index}`)
      }
      await waitForStreams(s, 1)

      // The browser restores the page from its cache. The page learns what has changed in the meantime.
      await notify(s, email)
      await page.evaluate('history.back()').catch(() => {})
      await page.waitForURL('/site/9', { waitUntil: 'commit' })
      await waitForCounts([page], 4)
      assert.equal(await page.evaluate('isRestored'), true)
      await waitForStreams(s, 1)
    })
  }

  test('seven tabs of one user share one stream, and every badge is right, also after the leading tab closes', async () => {
    const email = 'seven.tabs@example.com'
    const first = await startSite(email)
    const requests: string[] = []
    first.context().on('request', request => {
      if (request.url().endsWith('/stream')) requests.push(request.url())
    })
    await storeNotifications(s, email, 3)
    const tabs = [first]
    while (tabs.length < 7) tabs.push(await first.context().newPage())
    for (const tab of tabs) await tab.goto('/site/')
    await waitForCounts(tabs, 3)
    assert.ok(requests.length < 14, `${requests.length} streams for seven tabs`)
    await waitForStreams(s, 1)

    await notify(s, email)
    await waitForCounts(tabs, 4)
    // The second tab opens its list and deletes a notification. The change reaches all other tabs.
    await tabs[1]!.getByRole('button', { name: /^Notifications, / }).click()
    await tabs[1]!
      .getByRole('button', { name: /^Supprimer : / })
      .first()
      .click()
    await waitForCounts(tabs, 3)
    for (let left = 7; left > 1; left -= 1) {
      await tabs.shift()!.close()
      await notify(s, email)
      await waitForCounts(tabs, 3 + 8 - left)
    }
    await waitForStreams(s, 1)
    assert.deepEqual(s.complaints, [])
  })

  test('six inboxes in one page share one stream and show the same number', async () => {
    const email = 'six.inboxes@example.com'
    const page = await startSite(email, 6)
    await storeNotifications(s, email, 3)
    await page.goto('/site/')
    await waitForCounts([page], 3)
    await notify(s, email)
    await waitForCounts([page], 4)
    await waitForStreams(s, 1)
  })

  test('if the leading tab does not answer, the tab that the user looks at takes the lead within seconds', async () => {
    const email = 'frozen@example.com'
    const leader = await startSite(email)
    await storeNotifications(s, email, 3)
    await leader.goto('/site/')
    await waitForCounts([leader], 3)
    const tab = await leader.context().newPage()
    await tab.goto('/site/')
    await waitForCounts([tab], 3)
    // The leading tab is busy for a minute, as a tab that a debugger has stopped. Its stream stays open.
    await leader.evaluate('setTimeout(() => { const end = Date.now() + 60_000; while (Date.now() < end); })')
    await notify(s, email)
    const startedAt = performance.now()
    await tab.evaluate('dispatchEvent(new Event("focus"))')
    await waitForCounts([tab], 4)
    assert.ok(performance.now() - startedAt < 25_000)
  })
})

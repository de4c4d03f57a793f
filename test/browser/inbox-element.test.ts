import assert from 'node:assert/strict'
import { before, suite, test } from 'node:test'
import type { Page } from 'playwright-core'
import { notify, serveSite, signUp, skip, stage, storeNotifications, waitForStreams } from '../support/browser.ts'

const s = stage()
const EMAIL = 'element@example.com'

suite('<courtside-inbox> in a page of another site', { skip, timeout: 180_000 }, () => {
  let page: Page
  let site = { head: '', body: '<courtside-inbox></courtside-inbox>', script: '' }

  before(async () => {
    page = await s.visit()
    await serveSite(page, () => site)
    await signUp(page, EMAIL)
    await storeNotifications(s, EMAIL, 120)
  })

  async function open(parts: Partial<typeof site> = {}, target = page): Promise<void> {
    site = { head: '', body: '<courtside-inbox></courtside-inbox>', script: '', ...parts }
    await target.goto('/site/')
  }

  const bell = (target = page) => target.getByRole('button', { name: /^Notifications/ })
  const color = (selector: string) =>
    page
      .locator(`courtside-inbox ${selector}`)
      .first()
      .evaluate(element => (globalThis as any).getComputedStyle(element).color as string)

  test('"99+" covers at most a quarter of the bell', async () => {
    await open()
    await page.getByText('99+').waitFor()
    const [count, icon] = [
      (await page.locator('courtside-inbox .count').boundingBox())!,
      (await page.locator('courtside-inbox .bell svg').boundingBox())!,
    ]
    const overlap = (start: number, size: number, otherStart: number, otherSize: number) =>
      Math.max(0, Math.min(start + size, otherStart + otherSize) - Math.max(start, otherStart))
    const covered =
      overlap(count.x, count.width, icon.x, icon.width) * overlap(count.y, count.height, icon.y, icon.height)
    assert.ok(covered <= (icon.width * icon.height) / 4, `${covered} of ${icon.width * icon.height} px²`)
  })

  test('the bell has the colour of the text around it or --courtside-bell, and the panel keeps its own colours', async () => {
    const dark = {
      body: '<header style="background: #0b3d2e; color: rgb(255, 255, 255)"><courtside-inbox></courtside-inbox></header>',
    }
    await open(dark)
    await bell().click()
    await page.locator('courtside-inbox li').first().waitFor()
    assert.equal(await color('.bell'), 'rgb(255, 255, 255)')
    assert.equal(await color('h2'), 'rgb(22, 33, 29)')
    await open({ ...dark, head: '<style>courtside-inbox { --courtside-bell: rgb(1, 2, 3) }</style>' })
    await bell().waitFor()
    assert.equal(await color('.bell'), 'rgb(1, 2, 3)')
  })

  test('a page can style the parts bell, count and panel', async () => {
    const rule = (part: string, value: string) => `courtside-inbox::part(${part}) { color: ${value} }`
    const rules = [rule('bell', 'rgb(1, 0, 0)'), rule('count', 'rgb(2, 0, 0)'), rule('panel', 'rgb(3, 0, 0)')]
    await open({ head: `<style>${rules.join('')}</style>` })
    await page.getByText('99+').waitFor()
    await bell().click()
    assert.deepEqual(
      [await color('.bell'), await color('.count'), await color('.panel')],
      ['rgb(1, 0, 0)', 'rgb(2, 0, 0)', 'rgb(3, 0, 0)'],
    )
  })

  test('a page that sets the same client again neither opens a stream nor closes the panel', async () => {
    const streams: string[] = []
    const count = (request: { url(): string }) => void (request.url().endsWith('/stream') && streams.push(''))
    page.on('request', count)
    await open({ script: 'window.setAgain = () => { document.querySelector("courtside-inbox").client = courtside }' })
    await page.getByText('99+').waitFor()
    await bell().click()
    await page.locator('courtside-inbox li').nth(19).waitFor()
    for (let round = 0; round < 20; round += 1) await page.evaluate('setAgain()')
    assert.equal(await bell().getAttribute('aria-expanded'), 'true')
    assert.equal(await page.locator('courtside-inbox li').count(), 20)
    await notify(s, EMAIL)
    await page.locator('courtside-inbox li').first().getByText('(2/4)').waitFor()
    assert.equal(streams.length, 1)
    await waitForStreams(s, 1)
    page.off('request', count)
  })

  test('after a sign-out and a new sign-in, setting the same client shows the notifications again', async () => {
    const visitor = await s.visit()
    await serveSite(visitor, () => site)
    await signUp(visitor, 'again@example.com')
    await storeNotifications(s, 'again@example.com', 2)
    const script = `
      const token = localStorage.getItem('courtside.token')
      window.leave = () => { localStorage.removeItem('courtside.token'); return courtside.signedIn() }
      window.comeBack = () => {
        localStorage.setItem('courtside.token', token)
        document.querySelector('courtside-inbox').client = courtside
      }`
    await open({ script }, visitor)
    await visitor.getByRole('button', { name: 'Notifications, 2 non lues' }).waitFor()
    await visitor.evaluate('leave()')
    await visitor.getByRole('button', { name: 'Notifications, aucune non lue' }).waitFor()
    await visitor.evaluate('comeBack()')
    await visitor.getByRole('button', { name: 'Notifications, 2 non lues' }).waitFor()
    await visitor.context().close()
  })

  test('if the module is evaluated twice, the second import does nothing', async () => {
    await open()
    await page.getByText('99+').waitFor()
    await page.evaluate('import("/client/inbox/element.js?again").then(() => {})')
    await page.getByText('99+').waitFor()
    assert.deepEqual(s.complaints, [])
  })

  test('an element without a client warns once in the console, and its panel shows a message', async () => {
    const lone = await page.context().newPage()
    await lone.route('**/alone/**', route =>
      route.fulfill({
        contentType: 'text/html',
        body: `<!doctype html><html lang="fr"><title>Club</title><courtside-inbox></courtside-inbox>
          <courtside-inbox></courtside-inbox><script type="module" src="/client/inbox.js"></script>`,
      }),
    )
    const warning = lone.waitForEvent('console', message => message.type() === 'warning')
    await lone.goto('/alone/')
    await bell(lone).first().click()
    await lone.getByText('Les notifications ne sont pas disponibles.').first().waitFor()
    assert.match((await warning).text(), /^<courtside-inbox> has no client\./)
    assert.equal(s.complaints.length, 1)
    s.complaints.length = 0
    await lone.close()
  })

  test('the open list says that it may be out of date while the browser is offline, and no longer afterwards', async () => {
    await open()
    await page.getByText('99+').waitFor()
    await bell().click()
    await page.locator('courtside-inbox li').first().waitFor()
    const stale = page.getByRole('status').filter({ hasText: 'Hors connexion.' })
    await page.context().setOffline(true)
    await stale.waitFor()
    // A panel that is opened while the browser is offline shows the old list, and also says that the list may be out of
    // date.
    await bell().click()
    await bell().click()
    await stale.waitFor()
    await page.context().setOffline(false)
    await stale.waitFor({ state: 'detached' })
    s.complaints.length = 0
  })

  test('the open list says that it may be out of date if the service does not answer', async () => {
    await open()
    await page.getByText('99+').waitFor()
    await bell().click()
    await page.locator('courtside-inbox li').first().waitFor()
    await page.route(/\/api\/v1\/notifications\?/, route => route.abort())
    await bell().click()
    await bell().click()
    await page.getByRole('status').filter({ hasText: 'Hors connexion.' }).waitFor()
    await page.unroute(/\/api\/v1\/notifications\?/)
    s.complaints.length = 0
  })

  test('in an English inbox, the French texts of the service are marked as French', async () => {
    await open({ body: '<courtside-inbox lang="en"></courtside-inbox>' })
    await page.getByRole('button', { name: 'Notifications, 121 unread' }).click()
    const text = page.locator('courtside-inbox .message').nth(1)
    await text.waitFor()
    const language = (element: any) => element.closest('[lang]').lang as string
    assert.equal(await text.evaluate(language), 'fr')
    assert.equal(await page.locator('courtside-inbox .title').first().evaluate(language), 'fr')
    assert.equal(await page.locator('courtside-inbox h2').evaluate(language), 'en')
    assert.equal(await bell().evaluate(language), 'en')
    await page.getByRole('button', { name: 'Delete: Partie complète' }).first().waitFor()
  })

  test('a score does not break at its hyphens', async () => {
    await s.sql`update notification set message = 'Anna a saisi le score 7-6(12-10) 4-6.' where dedup_key = 'stored 120'`
    await open()
    await bell().click()
    const text = page.locator('courtside-inbox .message').nth(1)
    await text.filter({ hasText: 'Anna a saisi' }).waitFor()
    assert.equal((await text.textContent())!.replaceAll('\u2060', ''), 'Anna a saisi le score 7-6(12-10) 4-6.')
    // In a column of one character, each line ends only where a line may break.
    const lines = await text.evaluate((element: any) => {
      element.style.cssText = 'width: 1px; overflow-wrap: normal'
      const { lineHeight } = (globalThis as any).getComputedStyle(element)
      return Math.round(element.getBoundingClientRect().height / Number.parseFloat(lineHeight))
    })
    assert.equal(lines, 'Anna a saisi le score 7-6(12-10) 4-6.'.split(' ').length)
    assert.deepEqual(s.complaints, [])
  })
})

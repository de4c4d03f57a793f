import assert from 'node:assert/strict'
import { before, suite, test } from 'node:test'
import type { Page } from 'playwright-core'
import { type SitePage, serveSite, signUp, skip, stage, storeNotifications } from '../support/browser.ts'

const s = stage()

const INBOX = '<courtside-inbox></courtside-inbox>'
const TALL = '<main style="height: 3000px">Club</main>'

type Layout = SitePage & { width?: number; height?: number }

/** A page with a header that sticks to the top of a phone. */
function onPhone(style: string): Layout {
  const header = `<header style="position: sticky; top: 0; display: flex; justify-content: end; ${style}">${INBOX}</header>`
  return { width: 360, height: 640, body: header + TALL }
}

/** A page with a bar at the bottom of the viewport. */
function atBottom(style = ''): Layout {
  const bar = `<nav style="position: fixed; inset: auto 0 0 0; display: flex; justify-content: end; ${style}">${INBOX}</nav>`
  return { width: 360, height: 640, body: TALL + bar }
}

const LAYOUTS: Record<string, Layout> = {
  'in a plain page, whose bell is at the left': { body: INBOX + TALL },
  'with a centred bell in a window of 481 px': {
    width: 481,
    body: `<header style="text-align: center">${INBOX}</header>${TALL}`,
  },
  'in a sticky header with a backdrop filter on a phone': onPhone('backdrop-filter: blur(4px)'),
  'in a sticky header with a transform on a phone': onPhone('transform: translateZ(0)'),
  'in a sticky header with a filter on a phone': onPhone('filter: saturate(2)'),
  'in a sticky header with will-change on a phone': onPhone('will-change: transform'),
  'in a bar at the bottom of a phone': atBottom(),
  'in a bar with a transform at the bottom of a phone': atBottom('transform: translateZ(0)'),
  'in a header with overflow: hidden': {
    body: `<header style="height: 56px; overflow: hidden; display: flex; justify-content: end">${INBOX}</header>${TALL}`,
  },
  'with the bell at the right': {
    body: `<header style="display: flex; justify-content: end">${INBOX}</header>${TALL}`,
  },
  'in a page from right to left': {
    body: `<header dir="rtl" style="display: flex; justify-content: end">${INBOX}</header>${TALL}`,
  },
  'in a window that is only 200 px high': { height: 200, body: INBOX + TALL },
  'in a header that writes capitals in one line': {
    body: `<header style="white-space: nowrap; text-transform: uppercase; text-align: end">${INBOX}</header>${TALL}`,
  },
}

suite('the place of the panel of the inbox', { skip, timeout: 180_000 }, () => {
  let page: Page
  let layout: Layout

  before(async () => {
    page = await s.visit()
    await serveSite(page, () => layout)
    await signUp(page, 'places@example.com')
    await storeNotifications(s, 'places@example.com', 25)
  })

  const bell = () => page.getByRole('button', { name: /^Notifications, 25 non lues/ })
  const panel = () => page.locator('courtside-inbox .panel')

  /** Opens the inbox in a layout, and checks that the panel is within the viewport and receives clicks. */
  async function checkPlace(name: string): Promise<void> {
    layout = LAYOUTS[name]!
    const { width = 1000, height = 700 } = layout
    await page.setViewportSize({ width, height })
    await page.goto('/site/')
    await bell().click()
    await page.getByText('Numéro 25', { exact: true }).waitFor()
    const box = (await panel().boundingBox())!
    const text = `${name}: ${JSON.stringify(box)} in ${width} × ${height}`
    // The scroll bar of a desktop browser takes up to 15 px.
    assert.ok(box.x >= 8 - 0.5 && box.x + box.width <= width - 8 + 0.5, text)
    assert.ok(box.y >= 8 - 0.5 && box.y + box.height <= height - 8 + 0.5, text)
    assert.ok(box.width >= Math.min(400, width - 31), text)
    assert.ok(box.height >= 150, text)
    // Playwright clicks only on elements that no other element covers or clips.
    await page.getByRole('button', { name: 'Supprimer : Partie complète' }).first().click({ trial: true })
    if (height > 200) await bell().click()
    else await page.keyboard.press('Escape')
    await panel().waitFor({ state: 'hidden' })
    assert.equal(await bell().getAttribute('aria-expanded'), 'false')
  }

  for (const name of Object.keys(LAYOUTS)) {
    test(`the panel is within the viewport ${name}`, () => checkPlace(name))
  }

  test('without the popover API, the panel is within the viewport in each of these layouts too', async () => {
    await page.addInitScript('delete HTMLElement.prototype.showPopover')
    for (const name of Object.keys(LAYOUTS)) await checkPlace(name)
  })

  test('the open panel follows the bell when the page scrolls and when the window gets narrower', async () => {
    layout = { body: `<div style="height: 300px"></div>${INBOX}${TALL}` }
    await page.setViewportSize({ width: 1000, height: 700 })
    await page.goto('/site/')
    await bell().click()
    await page.getByText('Numéro 25', { exact: true }).waitFor()
    for (const change of [
      () => page.mouse.wheel(0, 200),
      () => page.evaluate('scrollTo(0, 1000)'),
      () => page.setViewportSize({ width: 320, height: 480 }),
      () => page.evaluate('scrollTo(0, 0)'),
    ]) {
      await change()
      await page.evaluate('new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve)))')
      const box = (await panel().boundingBox())!
      const { width, height } = page.viewportSize()!
      const text = `${JSON.stringify(box)} in ${width} × ${height}`
      assert.ok(box.x >= 7.5 && box.x + box.width <= width - 7.5, text)
      assert.ok(box.y >= 7.5 && box.y + box.height <= height - 7.5, text)
    }
    assert.deepEqual(s.complaints, [])
  })
})

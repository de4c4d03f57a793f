import assert from 'node:assert/strict'
import { before, suite, test } from 'node:test'
import type { Page } from 'playwright-core'
import { chooseLevel, signUp, skip, stage, storeNotifications } from '../support/browser.ts'

const s = stage()

suite('<courtside-inbox>', { skip, timeout: 180_000 }, () => {
  const email = 'anna@example.com'
  let page: Page

  before(async () => {
    page = await s.visit()
    await signUp(page, email, 'Anna')
    await chooseLevel(page)
    await storeNotifications(s, email, 25)
  })

  const bell = () => page.getByRole('button', { name: /^Notifications, / })
  const items = () => page.locator('courtside-inbox li')
  const readFocus = () =>
    page.evaluate<string>(`(() => {
    let element = document.activeElement
    while (element.shadowRoot?.activeElement) element = element.shadowRoot.activeElement
    const labels = element.getAttribute('aria-labelledby')?.split(' ')
    if (labels) return labels.map(id => element.getRootNode().getElementById(id).textContent).join(' ')
    return element.getAttribute('aria-label') ?? element.textContent
  })()`)

  /**
   * Waits until the element that has the focus matches `name`. The inbox may move the focus after it has changed the
   * unread count, so a single check could come too early.
   */
  async function waitForFocus(name: RegExp): Promise<void> {
    let last = await readFocus()
    for (const until = performance.now() + 30_000; !name.test(last) && performance.now() < until; )
      last = await readFocus()
    assert.match(last, name)
  }

  test('"Afficher les précédentes" adds each earlier notification exactly once and focuses the first new item', async () => {
    await bell().click()
    await items().nth(19).waitFor()
    assert.equal(await items().count(), 20)
    await page.getByRole('button', { name: 'Afficher les précédentes' }).click()
    await items().nth(24).waitFor()
    const texts = await page.locator('courtside-inbox .message').allInnerTexts()
    assert.deepEqual(
      texts,
      Array.from({ length: 25 }, (_, index) => `Numéro ${25 - index}`),
    )
    await waitForFocus(/Numéro 5/)
    await page.getByRole('button', { name: 'Afficher les précédentes' }).waitFor({ state: 'hidden' })
  })

  test('"Tout marquer comme lu" marks the listed notifications as read, and no others', async () => {
    await page.keyboard.press('Escape')
    await page.reload()
    await page.getByRole('button', { name: 'Notifications, 25 non lues' }).click()
    await items().nth(19).waitFor()
    await page.getByRole('button', { name: 'Tout marquer comme lu' }).click()
    await page.getByRole('button', { name: 'Notifications, 5 non lues' }).waitFor()
    await waitForFocus(/^Notifications$/)
  })

  test('with only the keyboard a user can open and close the inbox, and mark and delete notifications', async () => {
    await page.keyboard.press('Escape')
    await waitForFocus(/^Notifications, 5 non lues$/)
    assert.equal(await bell().getAttribute('aria-expanded'), 'false')
    await page.getByRole('button', { name: 'Événement suivant' }).press('Enter')
    await page.getByRole('button', { name: 'Notifications, 6 non lues' }).waitFor()
    await bell().focus()
    await page.keyboard.press('Enter')
    await items().first().getByText('(2/4)').waitFor()
    await page.keyboard.press('Tab')
    await waitForFocus(/^Tout marquer comme lu$/)
    await page.keyboard.press('Tab')
    await waitForFocus(/^Réglages des notifications$/)
    await page.keyboard.press('Tab')
    await waitForFocus(/^Non lue\.Un joueur a rejoint/)
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Notifications, 5 non lues' }).waitFor()
    await waitForFocus(/^Un joueur a rejoint/)
    // No listed notification is unread, so the inbox hides the button "Tout marquer comme lu".
    await page.getByRole('button', { name: 'Tout marquer comme lu' }).waitFor({ state: 'hidden' })
    await page.keyboard.press('Tab')
    await waitForFocus(/^Supprimer : Un joueur a rejoint la partie$/)
    await page.keyboard.press('Enter')
    await items().first().getByText('Numéro 25').waitFor()
    await waitForFocus(/^Supprimer : Partie complète$/)
    await page.keyboard.press('Escape')
    assert.equal(await bell().getAttribute('aria-expanded'), 'false')
    await waitForFocus(/^Notifications, /)
  })

  test('if the list cannot be loaded, the inbox shows an error and a button that tries again', async () => {
    await page.reload()
    await page.getByRole('button', { name: 'Notifications, 5 non lues' }).waitFor()
    const list = /\/api\/v1\/notifications\?/
    await page.route(list, route => route.abort())
    await bell().click()
    await page.getByText('n’ont pas pu être chargées').waitFor()
    await page.unroute(list)
    await page.getByRole('button', { name: 'Réessayer' }).click()
    await items().first().getByText('Numéro 25').waitFor()
    s.complaints.length = 0
  })

  test('if a deletion fails, the inbox shows an error and keeps the notification', async () => {
    const one = /\/api\/v1\/notifications\/\d+$/
    await page.route(one, route => route.abort())
    await page
      .getByRole('button', { name: /^Supprimer : / })
      .first()
      .click()
    await page.getByRole('alert').filter({ hasText: 'injoignable' }).waitFor()
    await items().first().getByText('Numéro 25').waitFor()
    await page.unroute(one)
    s.complaints.length = 0
  })

  test('the unread count is right even if the stream reports a deletion before the deletion request is answered', async () => {
    const one = /\/api\/v1\/notifications\/\d+$/
    // The test delays the answer to the deletion until both inboxes show the count from the stream.
    const tab = await page.context().newPage()
    await tab.goto('/')
    await tab.getByRole('button', { name: 'Notifications, 5 non lues' }).waitFor()
    await tab.getByRole('button', { name: 'Événement suivant' }).click()
    await page.getByRole('button', { name: 'Notifications, 6 non lues' }).waitFor()
    await page.route(one, async route => {
      const answer = await route.fetch()
      await tab.getByRole('button', { name: 'Notifications, 5 non lues' }).waitFor()
      await page.getByRole('button', { name: 'Notifications, 5 non lues' }).waitFor()
      await route.fulfill({ response: answer })
    })
    await page.getByRole('button', { name: 'Supprimer : Un joueur a rejoint la partie' }).click()
    await items().first().getByText('Numéro 25').waitFor()
    assert.equal(await bell().getAttribute('aria-label'), 'Notifications, 5 non lues')
    await page.unroute(one)
    await tab.close()
  })

  test('two inboxes of one user show the same notifications and the same unread count', async () => {
    const tab = await page.context().newPage()
    await tab.goto('/')
    await tab.getByRole('button', { name: 'Notifications, 5 non lues' }).click()
    await tab.locator('courtside-inbox li').nth(19).waitFor()
    await page
      .getByRole('button', { name: /^Supprimer : / })
      .first()
      .click()
    await items().first().getByText('Numéro 24').waitFor()
    await page.getByRole('button', { name: 'Afficher les précédentes' }).click()
    await items().nth(23).waitFor()
    await page.getByRole('button', { name: 'Tout marquer comme lu' }).click()
    await tab.getByRole('button', { name: 'Notifications, aucune non lue' }).waitFor()
    // When "Numéro 24" is the first item of the list in `tab`, this tab has reloaded its list after the deletion.
    await tab.locator('courtside-inbox li').first().getByText('Numéro 24').waitFor()
    await tab.close()
  })

  test('the inbox uses the client of the page even if the page sets the client before the element is defined', async () => {
    const early = await page.context().newPage()
    await early.route('**/client/inbox.js', async route => {
      const answer = await route.fetch()
      // The test replaces the script that defines the element with an empty script. So the page sets the client first.
      // The test imports the element later.
      await route.fulfill({ response: answer, body: '' })
    })
    await early.goto('/')
    await early.locator('courtside-inbox').waitFor({ state: 'attached' })
    await early.evaluate('import("/client/inbox/element.js").then(() => {})')
    await early.getByRole('button', { name: /^Notifications, / }).waitFor()
    await early.close()
  })

  test('the inbox is in English if its lang attribute is en', async () => {
    await page.evaluate('document.querySelector("courtside-inbox").lang = "en"')
    await page.getByRole('button', { name: 'Notifications, none unread' }).waitFor()
    assert.deepEqual(s.complaints, [])
  })
})

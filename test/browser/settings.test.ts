import assert from 'node:assert/strict'
import { before, suite, test } from 'node:test'
import type { Page } from 'playwright-core'
import { chooseLevel, serveSite, signUp, skip, stage } from '../support/browser.ts'
import { waitUntil } from '../support/wait-until.ts'

const s = stage()
const EMAIL = 'settings@example.com'
type Stored = {
  types: Record<string, { push?: boolean; email?: boolean }>
  email_paused: boolean
  quiet_from: string
  quiet_to: string
  time_zone: string
}
const JOINED = 'Un joueur rejoint votre partie'

suite('the settings of <courtside-inbox>', { skip, timeout: 240_000 }, () => {
  let page: Page

  before(async () => {
    page = await s.visit()
    await signUp(page, EMAIL)
    await chooseLevel(page)
  })

  const bell = (target = page) => target.getByRole('button', { name: /^Notifications, / })
  const gear = (target = page) => target.getByRole('button', { name: 'Réglages des notifications' })
  const heading = (target = page) => target.getByRole('heading', { name: 'Réglages des notifications' })
  const field = (name: string | RegExp) => page.getByRole('switch', { name })
  const isFocused = (target: ReturnType<typeof gear>) =>
    target.evaluate((element: any): boolean => element.getRootNode().activeElement === element)

  async function open(target = page): Promise<void> {
    await target.keyboard.press('Escape')
    await bell(target).click()
    await gear(target).click()
    await heading(target).waitFor()
  }

  /** Returns the choices that the service has stored for the user. */
  async function readStored() {
    const [row] = await s.sql<Stored>`
      select types, email_paused, quiet_from, quiet_to, time_zone
      from notification_preference where user_id = (select id from app_user where email = ${EMAIL})`
    return row
  }

  test('with only the keyboard, a user opens the settings, switches a channel off and returns to the list', async () => {
    await bell().focus()
    await page.keyboard.press('Enter')
    await gear().waitFor()
    await page.keyboard.press('Tab')
    for (let steps = 0; steps < 5 && !(await isFocused(gear())); steps += 1) await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await heading().waitFor()
    await waitUntil(() => isFocused(heading()))
    const push = field(`${JOINED} Push`)
    await push.waitFor()
    assert.equal(await push.isChecked(), true)
    for (let steps = 0; steps < 9 && !(await isFocused(push)); steps += 1) await page.keyboard.press('Tab')
    await page.keyboard.press('Space')
    assert.equal(await push.isChecked(), false)
    await waitUntil(async () => (await readStored())?.types.game_joined?.push === false)
    await page.getByRole('button', { name: 'Retour aux notifications' }).press('Enter')
    await waitUntil(() => isFocused(gear()))
    await page.getByText('Rien pour l’instant.').waitFor()
    await page.keyboard.press('Escape')
    assert.equal(await isFocused(bell()), true)
    assert.deepEqual(s.complaints, [])
  })

  test('the settings show the stored choices after a reload', async () => {
    await page.reload()
    await open()
    await field(`${JOINED} Push`).waitFor()
    assert.equal(await field(`${JOINED} Push`).isChecked(), false)
    assert.equal(await field(`${JOINED} E-mail`).isChecked(), false)
    await field(`${JOINED} E-mail`).click()
    await field('Suspendre tous les e-mails').click()
    await waitUntil(async () => (await readStored())?.email_paused === true)
    assert.deepEqual((await readStored())!.types.game_joined, { push: false, email: true })
  })

  test('a change that the service refuses is taken back, and its error is shown at the field', async () => {
    await open()
    const push = field(`${JOINED} Push`)
    await push.waitFor()
    await page.route('**/notification-preferences', route => route.abort())
    await push.click()
    const row = page.locator('courtside-inbox .row', { has: push }).locator('xpath=..')
    await row.getByRole('alert').filter({ hasText: 'Le service est injoignable.' }).waitFor()
    assert.equal(await push.isChecked(), false)
    assert.equal(await push.getAttribute('aria-invalid'), 'true')
    assert.equal(await field(`${JOINED} E-mail`).getAttribute('aria-invalid'), 'false')
    await page.unroute('**/notification-preferences')
    await push.click()
    await waitUntil(async () => (await readStored())?.types.game_joined?.push === true)
    assert.equal(await push.getAttribute('aria-invalid'), 'false')
    s.complaints.length = 0
  })

  test('the quiet hours and the time zone are stored, and a wrong value stays with its error until it is right', async () => {
    await open()
    const [from, to, zone] = [page.getByLabel('De', { exact: true }), page.getByLabel('À'), page.getByLabel('Fuseau')]
    await from.waitFor()
    await from.fill('21:30')
    await to.fill('21:30')
    await to.press('Enter')
    const problem = page.locator('courtside-inbox .pair').getByRole('alert').filter({ hasText: /./ })
    await problem.first().waitFor()
    assert.equal(await to.getAttribute('aria-invalid'), 'true')
    assert.equal(await to.inputValue(), '21:30')
    await to.fill('06:45')
    await to.press('Enter')
    await waitUntil(async () => (await readStored())?.quiet_to === '06:45')
    assert.equal((await readStored())!.quiet_from, '21:30')
    await problem.waitFor({ state: 'detached' })

    await zone.fill('Europe/Nowhere')
    await zone.press('Enter')
    await page.locator('courtside-inbox .field', { has: zone }).getByRole('alert').filter({ hasText: /./ }).waitFor()
    await zone.fill('America/Montreal')
    await zone.press('Enter')
    await waitUntil(async () => (await readStored())?.time_zone === 'America/Montreal')
    s.complaints.length = 0
  })

  test('an English inbox has English settings, whatever the language of the client', async () => {
    await serveSite(page, () => ({ body: '<courtside-inbox lang="en" settings></courtside-inbox>' }))
    const site = await page.context().newPage()
    await site.goto('/site/')
    await site.getByRole('button', { name: /^Notifications, / }).click()
    await site.getByRole('button', { name: 'Notification settings' }).click()
    await site.getByRole('switch', { name: 'A player joins your game Push' }).waitFor()
    await site.getByRole('switch', { name: 'Wait until the quiet hours end' }).waitFor()
    // Without the attribute `service-worker` there is no switch for this device.
    assert.equal(await site.getByRole('switch', { name: /this device/ }).count(), 0)
    await site.close()
    assert.deepEqual(s.complaints, [])
  })

  test('without the attribute settings, the inbox has no settings', async () => {
    await page.context().unroute('**/site/**')
    await serveSite(page, () => ({ body: '<courtside-inbox></courtside-inbox>' }))
    const site = await page.context().newPage()
    await site.goto('/site/')
    await site.getByRole('button', { name: /^Notifications, / }).click()
    await site.getByText('Rien pour l’instant.').waitFor()
    assert.equal(await site.getByRole('button', { name: 'Réglages des notifications' }).count(), 0)
    await site.close()
  })

  test('after the end of the session, the settings say why pushes carry no text, and offer to sign in', async () => {
    await page.context().unroute('**/site/**')
    await serveSite(page, () => ({
      body: '<courtside-inbox lang="fr" settings service-worker="/service-worker.js"></courtside-inbox><p>',
      script: `
        courtside.push.state = async () => 'on'
        document.querySelector('courtside-inbox').addEventListener('sign-in-request', event => {
          document.querySelector('p').textContent = event.type
        })
        globalThis.end = () => {
          localStorage.removeItem('courtside.token')
          return courtside.signedIn()
        }`,
    }))
    const site = await page.context().newPage()
    await site.goto('/site/')
    await bell(site).waitFor()
    await site.evaluate('end()')
    await bell(site).click()
    await gear(site).click()
    await site.getByText('Votre session a expiré.').waitFor()
    await site.getByRole('switch', { name: /cet appareil/ }).waitFor()
    await site.getByRole('button', { name: 'Se connecter' }).click()
    await site.getByText('sign-in-request').waitFor()
    await site.close()
    s.complaints.length = 0
  })
})

import assert from 'node:assert/strict'
import { before, suite, test } from 'node:test'
import type { Page } from 'playwright-core'
import { chooseLevel, letTimePass, signUp, skip, stage, takeCode } from '../support/browser.ts'
import { openSettings, readSubscriptions, subscribe, visitWithPush } from '../support/local-push.ts'
import { waitUntil } from '../support/wait-until.ts'

const s = stage()

suite('the switch for pushes to this device', { skip, timeout: 240_000 }, () => {
  let user: Page

  before(async () => {
    user = await s.visit()
    await signUp(user, 'states@example.com')
    await chooseLevel(user)
  })

  test('a subscription stays when the session expires, and the page says why pushes carry no text until the sign-in', async () => {
    const email = 'expired@example.com'
    const page = await visitWithPush(s)
    await signUp(page, email)
    await chooseLevel(page)
    await subscribe(page)
    const [before] = await readSubscriptions(s, email)
    await s.sql`
      update session set created_at = created_at - interval '10 days', expires_at = expires_at - interval '10 days'
      where id = ${before!.session_id}`
    // The service caches the state of a session for at most 5 s.
    await waitUntil(async () => {
      await page.reload()
      await page.getByRole('heading', { level: 1 }).waitFor()
      return page.getByLabel('Adresse e-mail').isVisible()
    }, 60_000)
    await page.getByText('n’affichent plus que leur titre').waitFor()
    await page.getByLabel('Adresse e-mail').fill(email)
    await letTimePass(s, email)
    await page.getByRole('button', { name: 'Recevoir un code' }).click()
    await takeCode(page, email, 2)
    await page.getByRole('heading', { name: /^Bonjour/ }).waitFor()
    await waitUntil(async () => (await readSubscriptions(s, email))[0]!.session_id !== before!.session_id)
    assert.equal((await readSubscriptions(s, email))[0]!.id, before!.id)
    await page.context().close()
    s.complaints.length = 0
  })

  test('the switch in the settings ends the subscription of the browser and of the service', async () => {
    const email = 'off@example.com'
    const page = await visitWithPush(s)
    await signUp(page, email)
    await chooseLevel(page)
    await subscribe(page)
    assert.equal((await readSubscriptions(s, email)).length, 1)
    await openSettings(page)
    await page.getByRole('switch', { name: /cet appareil/ }).click()
    await page.getByText('que si le site est ouvert').waitFor()
    assert.equal((await readSubscriptions(s, email)).length, 0)
    assert.equal(await page.evaluate('localStorage.getItem("test.subscription")'), null)
    assert.deepEqual(s.complaints, [])
    await page.context().close()
  })

  test('if the browser cannot subscribe, the switch goes back and shows an error', async () => {
    const page = await s.visit()
    await page.context().grantPermissions(['notifications'], { origin: s.service.address })
    await page.addInitScript(
      `PushManager.prototype.subscribe = async () => { throw new DOMException('', 'AbortError') }`,
    )
    await signUp(page, 'refused@example.com')
    await chooseLevel(page)
    await openSettings(page)
    await page.getByRole('switch', { name: /cet appareil/ }).click()
    await page.getByRole('alert').filter({ hasText: 'Le navigateur refuse les notifications.' }).waitFor()
    assert.equal(await page.getByRole('switch', { name: /cet appareil/ }).isChecked(), false)
    assert.deepEqual(s.complaints, [])
    await page.context().close()
  })

  const states: [state: string, script: string, text: string, isDisabled: boolean][] = [
    ['unsupported', 'delete globalThis.PushManager', 'ne sont pas disponibles dans ce navigateur', true],
    ['denied', permission('denied'), 'Vous avez bloqué les notifications', true],
    ['default', permission('default'), 'vous demandera votre accord', false],
    ['off', permission('granted'), 'que si le site est ouvert', false],
    [
      'needs-install',
      `delete globalThis.PushManager
       navigator.standalone = false`,
      'ajoutez d’abord ce site à l’écran d’accueil',
      true,
    ],
  ]
  for (const [state, script, text, isDisabled] of states) {
    test(`the switch for this device explains the state ${state}`, async () => {
      const other = await user.context().newPage()
      await other.addInitScript(script)
      await other.goto('/')
      await openSettings(other)
      await other.getByText(text).waitFor()
      assert.equal(await other.getByRole('switch', { name: /cet appareil/ }).isDisabled(), isDisabled)
      await other.close()
    })
  }
})

/** Returns a script that gives `Notification.permission` a value. */
function permission(value: string): string {
  return `Object.defineProperty(Notification, 'permission', { get: () => '${value}' })`
}

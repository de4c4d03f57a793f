import assert from 'node:assert/strict'
import { beforeEach, suite, test } from 'node:test'
import type { Page, Route } from 'playwright-core'
import { mailedCode, requestSignUp, signUp, skip, stage } from '../support/browser.ts'

const s = stage()

/** Opens the code screen of a new user. @returns the page, and the code in the mail */
async function openCodeScreen(email: string): Promise<{ page: Page; code: string }> {
  const page = await s.visit()
  await requestSignUp(page, email, 'Zoé')
  const code = (await (await mailedCode(page, email)).textContent())!
  return { page, code }
}

/** Lets the service demand a part before the mailed code, as it does for an account under attack. */
async function demandFirstPart(page: Page, part: string): Promise<string[]> {
  const codes: string[] = []
  await page.route('**/verify-otp', (route: Route) => {
    const { code } = route.request().postDataJSON()
    codes.push(code)
    if (code !== part) return route.continue()
    const message = 'Saisissez maintenant les quatre chiffres suivants.'
    const json = { message, code: 'otp_continue', errors: { code: [message] } }
    return route.fulfill({ status: 422, json })
  })
  return codes
}

suite('the entry of a code on the page', { skip, timeout: 180_000 }, () => {
  beforeEach(() => {
    s.complaints.length = 0
  })

  test('after the right first part, the page asks for the next part, and the last part signs the user in', async () => {
    const { page, code } = await openCodeScreen('two.parts@example.com')
    const first = code === '4921' ? '4922' : '4921'
    const codes = await demandFirstPart(page, first)
    const input = page.getByLabel('Code à 4 chiffres')
    await input.pressSequentially(first)
    await page.getByRole('status').filter({ hasText: 'Saisissez maintenant' }).waitFor()
    assert.equal(await input.inputValue(), '')
    await page.locator('input.code:focus').waitFor()
    await input.pressSequentially(code)
    await page.getByRole('heading', { name: 'Quel est votre niveau ?' }).waitFor()
    assert.deepEqual(codes, [first, code])
  })

  test('the page takes all parts of a code that the user pastes in one text', async () => {
    const { page, code } = await openCodeScreen('pasted@example.com')
    const first = code === '4921' ? '4922' : '4921'
    const codes = await demandFirstPart(page, first)
    await page.getByLabel('Code à 4 chiffres').fill(`${first}, puis ${code}`)
    await page.getByRole('heading', { name: 'Quel est votre niveau ?' }).waitFor()
    assert.deepEqual(codes, [first, code])
  })

  test('the page converts full-width digits, and cuts off a fifth typed digit', async () => {
    const { page, code } = await openCodeScreen('fullwidth@example.com')
    const input = page.getByLabel('Code à 4 chiffres')
    // After the answer, the page would select the wrong code, and the fifth digit would replace it.
    let release = () => {}
    const typed = new Promise<void>(resolve => {
      release = resolve
    })
    await page.route('**/verify-otp', async route => {
      await typed
      await route.abort()
    })
    await input.pressSequentially('12345')
    assert.equal(await input.inputValue(), '1234')
    release()
    await page.getByRole('alert').filter({ hasText: /./ }).waitFor()
    await page.unroute('**/verify-otp')
    const wide = [...code].map(digit => String.fromCodePoint(0xff10 + Number(digit))).join('')
    await input.fill(wide)
    await page.getByRole('heading', { name: 'Quel est votre niveau ?' }).waitFor()
  })

  test('"Renvoyer un code" repeats the whole sign-up, also after a reload of the page', async () => {
    const email = 'resent@example.com'
    const { page, code } = await openCodeScreen(email)
    await page.reload()
    // The last mail is less than 60 s old, so the service would refuse another one.
    await page.route('**/request-otp', route => route.fulfill({ json: { message: 'Envoyé.' } }))
    const request = page.waitForRequest('**/request-otp')
    await page.getByRole('button', { name: 'Renvoyer un code' }).click()
    const body = { email, first_name: 'Zoé', last_name: 'Durand', accept_cgu: true }
    assert.deepEqual((await request).postDataJSON(), body)
    await page.getByText('Un e-mail est reparti.').waitFor()
    await page.getByLabel('Code à 4 chiffres').fill(code)
    await page.getByRole('heading', { name: 'Quel est votre niveau ?' }).waitFor()
    assert.deepEqual(s.complaints, [])
  })

  test('a log-out with the ticked box for a shared computer forgets the account, and a log-out without the tick keeps a last token', async () => {
    for (const isShared of [true, false]) {
      const page = await s.visit()
      await signUp(page, `shared.${isShared}@example.com`)
      await page.getByRole('radio').first().check()
      await page.getByRole('button', { name: 'Enregistrer' }).click()
      const box = page.getByLabel(/^Ordinateur partagé/)
      assert.equal(await box.isChecked(), true)
      await box.setChecked(isShared)
      const request = page.waitForRequest('**/logout')
      await page.getByRole('button', { name: 'Se déconnecter' }).click()
      assert.deepEqual((await request).postDataJSON(), isShared ? { forget: true } : {})
      await page.getByText('Votre session est terminée.').waitFor()
      const last = await page.evaluate('localStorage.getItem("courtside.last_token")')
      assert.equal(last === null, isShared)
    }
    assert.deepEqual(s.complaints, [])
  })
})

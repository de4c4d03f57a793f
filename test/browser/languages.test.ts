import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { chooseLevel, mailedCode, signUp, skip, stage } from '../support/browser.ts'

const s = stage()

suite('the languages of the page', { skip, timeout: 180_000 }, () => {
  test('on an English page, the French names and descriptions of the levels are marked as French', async () => {
    const email = 'levels@example.com'
    const page = await s.visit({ locale: 'en-GB' })
    await page.goto('/')
    await page.getByRole('button', { name: 'Create an account' }).click()
    await page.getByLabel('First name').fill('Lee')
    await page.getByLabel('Last name').fill('Stone')
    await page.getByLabel('Email address').fill(email)
    await page.getByLabel(/terms/).check()
    await page.getByRole('button', { name: 'Send me a code' }).click()
    await (await mailedCode(page, email)).click()
    await page.getByRole('heading', { name: 'What is your level?' }).waitFor()
    assert.equal(await page.locator('.level').count(), 8)
    assert.equal(await page.locator('.level [lang=fr] strong').count(), 8)
    await page.getByRole('radio', { name: /^Avancé/ }).check()
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('heading', { name: 'Hello Lee' }).waitFor()
    assert.equal(await page.locator('[lang=fr]', { hasText: 'Vous contrôlez le rythme' }).count(), 1)

    // An operator has imported other levels, whose language the page does not know.
    await s.sql`update game_level set name = 'Advanced' where slug = 'avance'`
    await page.reload()
    await page.getByText('Advanced').waitFor()
    assert.equal(await page.locator('main [lang=fr]').count(), 0)
    await s.sql`update game_level set name = 'Avancé' where slug = 'avance'`
    assert.deepEqual(s.complaints, [])
  })

  test('without a network, the French development panel shows a French error', async () => {
    const page = await s.visit()
    await signUp(page, 'offline@example.com')
    await chooseLevel(page)
    await page.context().setOffline(true)
    await page.getByRole('button', { name: 'Événement suivant' }).click()
    await page.locator('#development').getByText('Le service est injoignable. Vérifiez votre connexion.').waitFor()
    s.complaints.length = 0
  })
})

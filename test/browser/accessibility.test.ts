import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { suite, test } from 'node:test'
import type { Page } from 'playwright-core'
import { chooseLevel, letTimePass, skip, stage, storeNotifications, takeCode } from '../support/browser.ts'

const s = stage({ env: { APP_NAME: 'Padel Club', TERMS_URL: 'https://club.example/terms' } })
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

type Violation = { id: string; help: string; nodes: { html: string; failureSummary: string }[] }

/** Checks a screen with axe in both colour schemes. Also checks that the screen is no wider than the phone. */
async function inspect(page: Page, screen: string): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    if (!(await page.evaluate('"axe" in window'))) await page.evaluate(AXE)
    const { violations, passes } = await page.evaluate<{ violations: Violation[]; passes: unknown[] }>('axe.run()')
    const messages = violations.map(
      ({ id, help, nodes }) => `${id}: ${help}\n${nodes[0]!.html}\n${nodes[0]!.failureSummary}`,
    )
    assert.deepEqual(messages, [], `${screen}, ${colorScheme}`)
    assert.ok(passes.length > 10)
  }
  const [width, available] = await page.evaluate<[number, number]>('[document.documentElement.scrollWidth, innerWidth]')
  assert.ok(width <= available, `${screen} is ${width} px wide, but the phone has ${available} px`)
}

suite('the page on a narrow phone, light and dark', { skip, timeout: 180_000 }, () => {
  test('axe finds no violation on any screen, and every screen fits a phone of 320 px', async () => {
    const email = 'ines@example.com'
    const page = await s.visit({ viewport: { width: 320, height: 640 }, isMobile: true, hasTouch: true })
    await page.goto('/')
    await page.getByRole('heading', { name: 'Développement' }).waitFor()
    await inspect(page, 'sign-in')
    await page.getByRole('button', { name: 'Créer un compte' }).tap()
    const terms = page.getByRole('link', { name: 'Lire les conditions (nouvel onglet)' })
    assert.deepEqual(
      [await terms.getAttribute('href'), await page.title()],
      ['https://club.example/terms', 'Bienvenue au bord du court · Padel Club'],
    )
    await page.getByRole('button', { name: 'Recevoir un code' }).tap()
    await inspect(page, 'sign-up with errors')
    await page.getByLabel('Prénom').fill('Inès')
    await page.getByLabel('Nom', { exact: true }).fill('de La Villardière-Montgolfier')
    await page.getByLabel('Adresse e-mail').fill(email)
    await page.getByLabel(/conditions/).check()
    await page.getByRole('button', { name: 'Recevoir un code' }).tap()
    await page.getByRole('heading', { name: 'Votre code' }).waitFor()
    await page.locator('.mails li', { hasText: email }).getByRole('button').waitFor()
    await inspect(page, 'code')
    await takeCode(page, email)
    await page.getByRole('heading', { name: 'Quel est votre niveau ?' }).waitFor()
    await inspect(page, 'level')
    await chooseLevel(page)
    await inspect(page, 'home')

    const bell = page.getByRole('button', { name: /^Notifications, / })
    await bell.tap()
    await page.getByText('Rien pour l’instant.').waitFor()
    await inspect(page, 'empty inbox')
    await bell.tap()
    await storeNotifications(s, email, 21)
    await bell.tap()
    await page.getByRole('button', { name: 'Afficher les précédentes' }).waitFor()
    await page.locator('courtside-inbox .text').first().tap()
    await inspect(page, 'inbox')
    const box = (await page.locator('courtside-inbox .panel').boundingBox())!
    assert.ok(box.x >= 0 && box.x + box.width <= 320 && box.y >= 0 && box.y + box.height <= 640, JSON.stringify(box))
    await page.getByRole('button', { name: 'Réglages des notifications' }).tap()
    await page.getByLabel('Fuseau horaire').waitFor()
    await page
      .getByText(/navigateur/)
      .first()
      .waitFor()
    await inspect(page, 'settings')
    await page.getByLabel('Fuseau horaire').fill('Europe/Nowhere')
    await page.getByLabel('À', { exact: true }).tap()
    await page.locator('courtside-inbox').getByRole('alert').filter({ hasText: 'fuseau' }).waitFor()
    await inspect(page, 'settings with an error')
    s.complaints.length = 0
    await bell.tap()

    await letTimePass(s, email)
    await page.getByRole('button', { name: 'Supprimer mon compte' }).tap()
    await page.getByRole('button', { name: 'Recevoir un code' }).tap()
    await page.getByLabel('Code à 4 chiffres').waitFor()
    await inspect(page, 'deletion')
    assert.deepEqual(s.complaints, [])
  })
})

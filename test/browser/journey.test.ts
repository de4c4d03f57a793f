import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import {
  chooseLevel,
  letTimePass,
  mailedCode,
  signUp,
  skip,
  stage,
  storeNotifications,
  takeCode,
} from '../support/browser.ts'

const s = stage()

suite('the page in a browser', { skip, timeout: 180_000 }, () => {
  test('the address that the start prints gives the page the key of the mailbox, and the page keeps the key', async () => {
    const page = await s.visit({ hasMailboxKey: false })
    await page.goto('/')
    await page.getByRole('button', { name: 'Créer un compte' }).waitFor()
    assert.equal(await page.getByRole('complementary').count(), 0)
    await page.goto(s.service.listening.page!)
    await page.reload()
    await page.getByRole('complementary').waitFor()
    assert.equal(page.url(), `${s.service.address}/`)
    await page.reload()
    await page.getByRole('complementary').waitFor()
    assert.deepEqual(s.complaints, [])
  })

  test('a user signs up, receives live notifications and logs out', async () => {
    const page = await s.visit()
    await signUp(page, 'marie@example.com')
    await chooseLevel(page, 'Avancé')
    await page.getByText('Vous contrôlez le rythme').waitFor()

    const bell = page.getByRole('button', { name: /^Notifications, / })
    await page.getByRole('button', { name: 'Notifications, aucune non lue' }).waitFor()
    await page.getByRole('button', { name: 'Événement suivant' }).click()
    await page.getByRole('button', { name: 'Notifications, 1 non lue' }).waitFor()
    await page.getByRole('status').filter({ hasText: 'Nouvelle notification : Un joueur a rejoint' }).waitFor()

    await bell.click()
    assert.equal(await bell.getAttribute('aria-expanded'), 'true')
    const items = page.getByRole('region', { name: 'Notifications' }).getByRole('listitem')
    await items.first().getByText('(2/4)').waitFor()
    // A notification that arrives while the panel is open appears at the top.
    await page.getByRole('button', { name: 'Événement suivant' }).press('Enter')
    await items.first().getByText('(3/4)').waitFor()
    await page.getByRole('button', { name: 'Notifications, 2 non lues' }).waitFor()

    await items
      .first()
      .getByRole('button', { name: /Un joueur/ })
      .first()
      .click()
    await page.getByRole('button', { name: 'Notifications, 1 non lue' }).waitFor()
    await page.getByRole('button', { name: 'Tout marquer comme lu' }).click()
    await page.getByRole('button', { name: 'Notifications, aucune non lue' }).waitFor()
    await page
      .getByRole('button', { name: /^Supprimer : / })
      .first()
      .click()
    await items.first().getByText('(2/4)').waitFor()
    await page.getByRole('button', { name: /^Supprimer : / }).click()
    await page.getByText('Rien pour l’instant.').waitFor()
    await page.keyboard.press('Escape')

    await page.getByRole('button', { name: 'Se déconnecter' }).click()
    await page.getByText('Votre session est terminée.').waitFor()
    assert.equal(await page.evaluate('localStorage.getItem("courtside.token")'), null)
    assert.deepEqual(s.complaints, [])
  })

  test('a user sees a countdown until the next code, pastes the code and deletes the account', async () => {
    const email = 'luc@example.com'
    const page = await s.visit()
    await signUp(page, email, 'Luc')
    await chooseLevel(page)
    await page.getByRole('button', { name: 'Se déconnecter' }).click()

    const requestCode = async () => {
      await page.getByLabel('Adresse e-mail').fill(email)
      await page.getByRole('button', { name: 'Recevoir un code' }).click()
      await page.getByRole('heading', { name: 'Votre code' }).waitFor()
    }
    await requestCode()
    // The last code is less than 60 s old. So the service refuses to send another code and states the remaining wait.
    // The page counts down this wait.
    const resend = page.getByRole('button', { name: /^Renvoyer un code dans 0:\d\d$/ })
    await resend.waitFor()
    assert.equal(await resend.getAttribute('aria-disabled'), 'true')
    await page.getByRole('button', { name: 'Changer d’adresse' }).click()
    await letTimePass(s, email)
    await requestCode()

    const code = page.getByLabel('Code à 4 chiffres')
    assert.equal(await code.getAttribute('inputmode'), 'numeric')
    assert.equal(await code.getAttribute('autocomplete'), 'one-time-code')
    const right = (await (await mailedCode(page, email, 2)).textContent())!
    const wrong = right === '0000' ? '0001' : '0000'
    await code.pressSequentially(wrong)
    await page.locator('#code-error').filter({ hasText: /./ }).waitFor()
    assert.equal(await code.getAttribute('aria-invalid'), 'true')
    // The user pastes the code with spaces and a line break. The page removes both and submits the code.
    await code.fill(` ${right.slice(0, 2)} ${right.slice(2)}\n`)
    await page.getByRole('heading', { name: 'Bonjour Luc' }).waitFor()

    await letTimePass(s, email)
    await page.getByRole('button', { name: 'Supprimer mon compte' }).click()
    await page.getByRole('button', { name: 'Recevoir un code' }).click()
    await page.getByLabel('Code à 4 chiffres').waitFor()
    await takeCode(page, email, 3)
    await page.getByRole('button', { name: 'Supprimer définitivement' }).click()
    await page.getByText('ont été supprimés').waitFor()
    const [row] = await s.sql<{ left: number }>`select count(*)::integer as left from app_user where email = ${email}`
    assert.equal(row!.left, 0)
    // The browser itself logs each 4xx answer. The page must not log anything else.
    assert.deepEqual(
      s.complaints.filter(text => !/status of 4(22|29)/.test(text)),
      [],
    )
    s.complaints.length = 0
  })

  test('the code screen counts down the seconds that the service states in Retry-After', async () => {
    const page = await s.visit()
    await page.route('**/request-otp', async route => {
      const response = await route.fetch()
      await route.fulfill({ response, headers: { ...response.headers(), 'retry-after': '90' } })
    })
    await page.goto('/')
    await page.getByLabel('Adresse e-mail').fill('waiting@example.com')
    await page.getByRole('button', { name: 'Recevoir un code' }).click()
    await page.getByRole('button', { name: /^Renvoyer un code dans 1:(30|2\d)$/ }).waitFor()
    assert.deepEqual(s.complaints, [])
  })

  test('the sign-up form shows each error next to the invalid field', async () => {
    const page = await s.visit()
    await signUp(page, 'taken@example.com')
    const other = await s.visit()
    await other.goto('/')
    await other.getByRole('button', { name: 'Créer un compte' }).click()
    await other.getByRole('button', { name: 'Recevoir un code' }).click()
    for (const name of ['first_name', 'last_name', 'email', 'accept_cgu']) {
      const input = other.locator(`#${name}`)
      assert.equal(await input.getAttribute('aria-invalid'), 'true', name)
      assert.equal(await input.getAttribute('aria-describedby'), `${name}-error`)
      assert.notEqual(await other.locator(`#${name}-error`).textContent(), '')
    }
    await other.getByLabel('Prénom').fill('Zoé')
    await other.getByLabel('Nom', { exact: true }).fill('Martin')
    await other.getByLabel('Adresse e-mail').fill('taken@example.com')
    await other.getByLabel(/conditions/).check()
    await other.getByRole('button', { name: 'Recevoir un code' }).click()
    await other.locator('#email-error').filter({ hasText: /./ }).waitFor()
    assert.equal(await other.locator('#first_name-error').textContent(), '')
    await other.locator('#email:focus').waitFor()
    s.complaints.length = 0
  })

  test('the page is in English in an English browser, and after a reload it shows the code screen again', async () => {
    const page = await s.visit({ locale: 'en-GB' })
    await page.goto('/')
    await page.getByRole('heading', { name: 'Welcome courtside' }).waitFor()
    assert.equal(await page.locator('html').getAttribute('lang'), 'en')
    await page.getByLabel('Email address').fill('nobody@example.com')
    await page.getByRole('button', { name: 'Send me a code' }).click()
    await page.getByText('on its way to nobody@example.com').waitFor()
    await page.reload()
    await page.getByText('on its way to nobody@example.com').waitFor()
    await page.getByRole('button', { name: 'Français' }).click()
    await page.getByRole('heading', { name: 'Votre code' }).waitFor()
    assert.equal(await page.locator('html').getAttribute('lang'), 'fr')
    assert.deepEqual(s.complaints, [])
  })

  test('the page shows markup in names and notifications as text', async () => {
    const page = await s.visit()
    const name = '<img src=x onerror=alert(1)><b>Zoé</b>'
    await signUp(page, 'markup@example.com', name)
    await chooseLevel(page)
    assert.equal(await page.getByRole('heading', { level: 1 }).textContent(), `Bonjour ${name}`)
    await storeNotifications(s, 'markup@example.com', 1)
    await s.sql`update notification set title = '<b>Titre</b>', message = ${name}`
    await page.getByRole('button', { name: /^Notifications, / }).click()
    await page.getByText('<b>Titre</b>', { exact: true }).waitFor()
    await page.getByText(name, { exact: true }).waitFor()
    assert.equal(await page.locator('b, img[src=x]').count(), 0)
    assert.deepEqual(s.complaints, [])
  })
})

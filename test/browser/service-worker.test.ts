import assert from 'node:assert/strict'
import { before, suite, test } from 'node:test'
import type { Page } from 'playwright-core'
import { skip, stage } from '../support/browser.ts'
import { createPushDelivery, findWorker, readBadges, readBanners } from '../support/push-delivery.ts'

const s = stage()

suite('the service worker in Chromium', { skip, timeout: 180_000 }, () => {
  let page: Page
  let origin: string
  let deliver: (data: string) => Promise<void>

  before(async () => {
    page = await s.visit()
    origin = s.service.address
    await page.context().grantPermissions(['notifications'], { origin })
    await page.goto('/')
    await page.getByLabel('Adresse e-mail').waitFor()
    await page.evaluate(
      `navigator.serviceWorker.register('service-worker.js').then(() => navigator.serviceWorker.ready)`,
    )
    ;({ deliver } = await createPushDelivery(page, origin))
  })

  const notification = {
    title: 'Partie annulée',
    body: 'La partie de ce soir est annulée.',
    lang: 'fr',
    dir: 'auto',
    tag: 'game-42',
    navigate: 'https://club.example/games/42',
    renotify: false,
    data: { id: 7, type: 'game_cancelled', game_id: 42 },
  }

  test('a push shows a banner with its text, tag and link, and the count on the icon', async () => {
    await deliver(JSON.stringify({ web_push: 8030, app_badge: 3, notification }))
    const { title, body, lang, tag, data, navigate } = notification
    assert.deepEqual(await readBanners(page, origin), [{ title, body, lang, tag, data: { ...data, navigate } }])
    assert.deepEqual(await readBadges(page, origin), [3])
  })

  test('a push with the same tag replaces the banner, and one with another tag does not', async () => {
    await deliver(JSON.stringify({ app_badge: 4, notification: { ...notification, title: 'Partie complète' } }))
    await deliver(
      JSON.stringify({ app_badge: 5, notification: { ...notification, tag: 'game-42-urgent', renotify: true } }),
    )
    const banners = await readBanners(page, origin)
    assert.deepEqual(banners.map(({ title, tag }) => `${tag} ${title}`).sort(), [
      'game-42 Partie complète',
      'game-42-urgent Partie annulée',
    ])
    await deliver(JSON.stringify({ app_badge: 0, notification }))
    assert.deepEqual((await readBadges(page, origin)).slice(-3), [4, 5, 0])
  })

  test('a push that nobody can read shows the name of the site', async () => {
    await deliver('{')
    const banner = (await readBanners(page, origin)).find(({ tag }) => tag === 'courtside')!
    assert.deepEqual([banner.title, banner.body, banner.data], ['127.0.0.1', '', { navigate: `${origin}/` }])
  })

  test('the policy of the page lets no other script become its service worker', async () => {
    const register = (url: string) =>
      page.evaluate<string>(`navigator.serviceWorker.register(${JSON.stringify(url)}).then(() => 'registered', String)`)
    assert.match(await register('web/app.js'), /TypeError/)
    assert.equal(await register('service-worker.js'), 'registered')
    assert.equal(page.context().serviceWorkers().length, 1)
    assert.equal(findWorker(page, origin).url(), `${origin}/service-worker.js`)
  })

  test('the pages of the suite report no error', () => {
    assert.deepEqual(
      s.complaints.filter(text => !/TrustedScriptURL|Trusted Type/i.test(text)),
      [],
    )
  })
})

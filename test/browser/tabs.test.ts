import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { Page } from 'playwright-core'
import { chooseLevel, signUp, skip, stage } from '../support/browser.ts'

const s = stage()

/** Opens two tabs of one signed-in user. */
async function openTwoTabs(email: string): Promise<[Page, Page]> {
  const one = await s.visit()
  await signUp(one, email)
  await chooseLevel(one)
  const other = await one.context().newPage()
  await other.goto('/')
  await other.getByRole('heading', { name: 'Bonjour Marie' }).waitFor()
  return [one, other]
}

suite('two tabs of one browser', { skip, timeout: 120_000 }, () => {
  test('after a logout in one tab, the other tab is signed out', async () => {
    const [one, other] = await openTwoTabs('leaving@example.com')
    await one.getByRole('button', { name: 'Se déconnecter' }).click()
    await other.getByText('Votre session est terminée.').waitFor()
    assert.equal(await other.locator('courtside-inbox').count(), 0)
    // Before the other tab learns of the logout, its stream may reconnect with the token of the ended session. The
    // browser then logs a 401.
    const complaints = s.complaints.filter(text => !text.includes('401 (Unauthorized)'))
    assert.deepEqual(complaints, [])
    s.complaints.length = 0
  })

  test('after a sign-in in one tab, the other tab is signed in', async () => {
    const one = await s.visit()
    const other = await one.context().newPage()
    await other.goto('/')
    await other.getByLabel('Adresse e-mail').waitFor()
    await signUp(one, 'arriving@example.com')
    await other.getByRole('heading', { name: 'Quel est votre niveau ?' }).waitFor()
    assert.deepEqual(s.complaints, [])
  })

  test('if two tabs have the same expired token, only one of the tabs refreshes the token', async () => {
    const [one, other] = await openTwoTabs('refreshing@example.com')
    const token = await one.evaluate<string>('localStorage.getItem("courtside.token")')
    const context = one.context()
    const refused = new Set<Page>()
    const refreshes: string[] = []
    context.on('request', request => {
      if (request.url().endsWith('/auth/refresh')) refreshes.push(request.url())
    })
    // When both tabs have sent `GET /auth/me`, the test answers both requests with the 401 for an expired token.
    let release = () => {}
    const both = new Promise<void>(resolve => {
      release = resolve
    })
    await context.route('**/api/v1/auth/me', async route => {
      const request = route.request()
      if (request.headers().authorization !== `Bearer ${token}`) return route.continue()
      refused.add(request.frame().page())
      if (refused.size === 2) release()
      await both
      const json = { message: 'Unauthenticated.', code: 'unauthenticated' }
      return route.fulfill({ status: 401, json, headers: { 'www-authenticate': 'Bearer error="invalid_token"' } })
    })
    // The test delays the first refresh until the other tab waits for the refresh lock.
    await context.route('**/api/v1/auth/refresh', async route => {
      const countWaiting = () => one.evaluate<number>('navigator.locks.query().then(({ pending }) => pending.length)')
      const deadline = performance.now() + 30_000
      while ((await countWaiting()) === 0) assert.ok(performance.now() < deadline, 'no tab waits for the refresh lock')
      return route.continue()
    })
    await Promise.all([one.reload(), other.reload()])
    for (const page of [one, other]) await page.getByRole('heading', { name: 'Bonjour Marie' }).waitFor()
    assert.equal(refused.size, 2)
    assert.equal(refreshes.length, 1)
    assert.notEqual(await other.evaluate('localStorage.getItem("courtside.token")'), token)
    s.complaints.length = 0
  })
})

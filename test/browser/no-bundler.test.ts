import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { suite, test } from 'node:test'
import { signUp, skip, stage, storeNotifications } from '../support/browser.ts'
import { openSettings } from '../support/local-push.ts'

const s = stage()
const readme = await readFile(new URL('../../client/README.md', import.meta.url), 'utf8')
const [, documented] = /```html\n([^`]*\/courtside\/index\.js[^`]*)```/.exec(readme)!

suite('the page without a bundler in client/README.md', { skip, timeout: 120_000 }, () => {
  test('shows the inbox and its settings with only the files of the folder dist', async () => {
    const email = 'files@example.com'
    const page = await s.visit()
    await signUp(page, email)
    await storeNotifications(s, email, 3)
    await page.route('**/courtside/**', route =>
      route.fulfill({
        path: new URL(
          `../../client/dist${new URL(route.request().url()).pathname.slice('/courtside'.length)}`,
          import.meta.url,
        ).pathname,
        contentType: 'text/javascript',
      }),
    )
    const body = documented!.replace('https://courtside.example', s.service.address)
    await page.route('**/club/', route =>
      route.fulfill({ contentType: 'text/html', body: `<!doctype html><html lang="fr"><title>Club</title>${body}` }),
    )
    await page.goto('/club/')
    await page.getByRole('button', { name: 'Notifications, 3 non lues' }).waitFor()
    await openSettings(page)
    await page.getByRole('switch', { name: 'Un joueur rejoint votre partie Push' }).waitFor()
    assert.deepEqual(s.complaints, [])
  })
})

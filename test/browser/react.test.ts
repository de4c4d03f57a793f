import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import { notify, signUp, skip, stage, storeNotifications, waitForStreams } from '../support/browser.ts'

const s = stage()
const ROOT = new URL('../..', import.meta.url).pathname
const EMAIL = 'react@example.com'

/** An app that a server renders, and that the browser hydrates. */
const APP = `
  import { createElement, StrictMode, useState } from 'react'
  import { Courtside, localStorageStorage } from 'courtside-client'
  import { CourtsideInbox } from 'courtside-client/react'
  const courtside = new Courtside({ storage: localStorageStorage(), language: 'fr' })
  globalThis.courtside = courtside
  export function App() {
    const [opened, setOpened] = useState('nothing')
    const inbox = createElement(CourtsideInbox, {
      client: courtside,
      lang: 'fr',
      className: 'bell',
      settings: true,
      'service-worker': '/service-worker.js',
      onSignInRequest: () => setOpened('sign-in'),
      onNotificationOpen: event => setOpened(event.detail.message),
    })
    return createElement(StrictMode, null, createElement('p', null, 'Opened: ' + opened), inbox)
  }
`

async function bundle(contents: string, platform: 'browser' | 'node'): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents: APP + contents, resolveDir: ROOT, loader: 'js' },
    bundle: true,
    format: platform === 'node' ? 'cjs' : 'esm',
    platform,
    write: false,
    // In this mode, React reports each difference between the server's HTML and the page.
    define: { 'process.env.NODE_ENV': '"development"' },
  })
  return outputFiles[0]!.text
}

/** Renders the app in a separate Node process, as a server does. */
async function renderOnServer(): Promise<string> {
  const code = await bundle(
    `import { renderToString } from 'react-dom/server'
     process.stdout.write(renderToString(createElement(App)))`,
    'node',
  )
  const folder = await mkdtemp(join(tmpdir(), 'courtside-react-'))
  try {
    await writeFile(join(folder, 'server.cjs'), code)
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [join(folder, 'server.cjs')])
    assert.equal(stderr, '')
    return stdout
  } finally {
    await rm(folder, { recursive: true })
  }
}

suite('courtside-client/react', { skip, timeout: 180_000 }, () => {
  test('a page that a server has rendered with React has a live inbox, and its listener is called', async () => {
    const html = await renderOnServer()
    const attributes = 'lang="fr" class="bell" service-worker="/service-worker.js" settings=""'
    assert.ok(html.includes(`<courtside-inbox ${attributes}></courtside-inbox>`), html)
    const script = await bundle(
      `import { hydrateRoot } from 'react-dom/client'
       hydrateRoot(document.querySelector('#root'), createElement(App))`,
      'browser',
    )
    const page = await s.visit()
    await page.route('**/react/**', route =>
      route.fulfill(
        route.request().url().endsWith('.js')
          ? { contentType: 'text/javascript', body: script }
          : {
              contentType: 'text/html',
              body: `<!doctype html><html lang="fr"><meta charset="utf-8"><title>Club</title><div id="root">${html}</div>
                <script type="module" src="/react/app.js"></script></html>`,
            },
      ),
    )
    await signUp(page, EMAIL)
    await storeNotifications(s, EMAIL, 3)
    await page.goto('/react/')
    await page.getByRole('button', { name: 'Notifications, 3 non lues' }).click()
    await notify(s, EMAIL)
    await page.getByRole('button', { name: 'Notifications, 4 non lues' }).waitFor()
    await page.getByText('Numéro 3', { exact: true }).click()
    await page.getByText('Opened: Numéro 3').waitFor()
    // React has rendered the app again, and the panel is still open.
    await page.getByText('Numéro 2', { exact: true }).click()
    await page.getByText('Opened: Numéro 2').waitFor()
    await waitForStreams(s, 1)
    assert.deepEqual(s.complaints, [])

    // The session ends, for example because it has expired.
    await page.evaluate(`localStorage.setItem('courtside.token', 'a.b.c'); courtside.me().catch(() => {})`)
    await page.getByText('Numéro 1', { exact: true }).waitFor({ state: 'hidden' })
    await page.getByRole('button', { name: /^Notifications, / }).click()
    await page.getByRole('button', { name: 'Réglages des notifications' }).click()
    await page.getByRole('button', { name: 'Se connecter' }).click()
    await page.getByText('Opened: sign-in').waitFor()
    s.complaints.length = 0
    await page.context().close()
  })
})

suite('the types of the element', { timeout: 120_000 }, () => {
  test('JSX knows <courtside-inbox> and its component, addEventListener knows the event, and the READMEs compile', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'courtside-types-'))
    try {
      await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
      const readme = await readFile(join(ROOT, 'client/README.md'), 'utf8')
      const recipe = /```tsx\n([\s\S]*?)```/.exec(readme)?.[1]
      assert.ok(recipe, 'client/README.md has no example for React')
      const example = /```ts\n([\s\S]*?)```/.exec(await readFile(join(ROOT, 'README.md'), 'utf8'))![1]!
      await writeFile(join(folder, 'example.ts'), example)
      await writeFile(join(folder, 'recipe.tsx'), `import { courtside } from './session'\n${recipe}`)
      await writeFile(
        join(folder, 'session.ts'),
        `import { Courtside } from 'courtside-client'\nexport const courtside = new Courtside()\n`,
      )
      await writeFile(
        join(folder, 'app.tsx'),
        `import { CourtsideInbox } from 'courtside-client/react'
         import { courtside } from './session'
         export const raw = <courtside-inbox lang="fr" className="bell" client={courtside} />
         export const wrapped = <CourtsideInbox client={courtside} onNotificationOpen={event => event.detail.id.toFixed()} />
         export const withSettings = <CourtsideInbox client={courtside} settings service-worker="/service-worker.js"
           onSignInRequest={event => event.type.trim()} />
         const inbox = document.querySelector('courtside-inbox')
         inbox?.addEventListener('notification-open', event => event.detail.title.trim())
         inbox?.addEventListener('click', event => event.clientX.toFixed())
         inbox?.removeEventListener('notification-open', () => {})
         // @ts-expect-error A client is no text.
         export const wrong = <CourtsideInbox client="me" />
         // @ts-expect-error A notification has no name.
         inbox?.addEventListener('notification-open', event => event.detail.name)
        `,
      )
      const options = ['--noEmit', '--strict', '--jsx', 'react-jsx', '--module', 'esnext', '--target', 'es2022']
      const files = ['example.ts', 'recipe.tsx', 'app.tsx']
      const compile = promisify(execFile)(
        process.execPath,
        [join(ROOT, 'node_modules/typescript/bin/tsc'), ...options, '--moduleResolution', 'bundler', ...files],
        { cwd: folder },
      ).catch(error => assert.fail(error.stdout))
      await compile
    } finally {
      await rm(folder, { recursive: true })
    }
  })
})

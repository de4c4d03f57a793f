import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { demoEvent, STORY_LENGTH } from '../src/games/demo-story.ts'
import { isUrgent } from '../src/notifications/queue-deliveries.ts'
import { type AnotherApp, anotherApp, harness } from './support/app.ts'
import { makeUser } from './support/factories.ts'

const h = harness()

/** Starts an app with other settings on the same database, calls `work` with the app, and then closes the app. */
async function withSettings(env: Record<string, string>, work: (other: AnotherApp) => Promise<void>): Promise<void> {
  const other = await anotherApp(h, env)
  try {
    await work(other)
  } finally {
    await other.close()
  }
}

const LOCAL = { host: 'localhost:3000' }

describe('the page', { timeout: 60_000 }, () => {
  test('GET / returns HTML, and its Content-Security-Policy allows no inline scripts or styles', async () => {
    const { status, headers, text } = await h.call('GET', '/')
    assert.deepEqual([status, headers['content-type']], [200, 'text/html; charset=utf-8'])
    const policy = headers['content-security-policy']!
    assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self'; /)
    assert.ok(!policy.includes('unsafe'))
    assert.doesNotMatch(text, /<style|<script(?![^>]* src=)| style=| on\w+=/)
  })

  test('the page, its metadata and the API reference show APP_NAME, and the page knows TERMS_URL', async () => {
    const env = { APP_NAME: `Padel & "Co" <b>$&`, TERMS_URL: 'https://club.example/terms?a=1&b=2' }
    await withSettings(env, async other => {
      const name = 'Padel &#38; &#34;Co&#34; &#60;b&#62;$&#38;'
      const { text, headers } = await other.call('GET', '/')
      assert.ok(text.includes(`<title>${name}</title>`))
      assert.ok(text.includes(`<meta name="application-name" content="${name}">`))
      assert.ok(text.includes('<meta name="terms-url" content="https://club.example/terms?a=1&#38;b=2">'))
      assert.ok(text.includes(`height="28">${name}</p>`))
      assert.doesNotMatch(text, /Courtside|\{\w+\}/)
      assert.notEqual(headers.etag, (await h.call('GET', '/')).headers.etag)
      assert.ok((await other.call('GET', '/docs')).text.includes(`<title>${name} API reference</title>`))
      assert.equal((await other.call('GET', '/api/v1/openapi.json')).body.info.title, env.APP_NAME)
    })
    assert.ok((await h.call('GET', '/')).text.includes('<meta name="terms-url" content="">'))
  })

  test('every file that the page links or imports exists', async () => {
    const seen = new Set<string>()
    const look = async (path: string): Promise<void> => {
      if (seen.has(path)) return
      seen.add(path)
      const { status, headers, text } = await h.call('GET', path)
      assert.equal(status, 200, path)
      if (path.endsWith('.js')) assert.equal(headers['content-type'], 'text/javascript; charset=utf-8')
      const links = path.endsWith('.js') ? /(?:from |import |import\()'([./][^']*)'/g : /(?:src|href)="([^"]*)"/g
      for (const [, link] of text.matchAll(links)) await look(new URL(link!, `http://h${path}`).pathname)
    }
    await look('/')
    for (const path of [
      '/web/app.js',
      '/web/page.css',
      '/client/index.js',
      '/client/inbox/element.js',
      '/client/inbox/settings.js',
      '/manifest.webmanifest',
      '/web/apple-touch-icon.png',
      '/web/texts.js',
    ]) {
      assert.ok(seen.has(path), path)
    }
  })

  test('the manifest has the name of the app, and every icon is a PNG of the stated size', async () => {
    await withSettings({ APP_NAME: 'Club "Été" <b>' }, async other => {
      const { headers, text } = await other.call('GET', '/manifest.webmanifest')
      assert.equal(headers['content-type'], 'application/manifest+json')
      const manifest = JSON.parse(text)
      assert.deepEqual([manifest.name, manifest.short_name], ['Club "Été" <b>', 'Club "Été" <b>'])
      assert.deepEqual([manifest.start_url, manifest.scope, manifest.display], ['./', './', 'standalone'])
      assert.deepEqual(
        manifest.icons.map(({ sizes, purpose }: Record<string, string>) => `${sizes} ${purpose}`),
        ['192x192 any', '512x512 any', '512x512 maskable'],
      )
      for (const { src, sizes, type } of manifest.icons) {
        const { rawPayload, headers } = await other.app.inject({ url: `/${src}` })
        assert.deepEqual([headers['content-type'], type], ['image/png', 'image/png'])
        assert.equal(`${rawPayload.readUInt32BE(16)}x${rawPayload.readUInt32BE(20)}`, sizes)
        assert.ok(rawPayload.length < 20_000, `${src} has ${rawPayload.length} bytes`)
      }
    })
  })

  test('the service worker is a classic script at the root, so that it controls the whole page', async () => {
    const { status, headers, text } = await h.call('GET', '/service-worker.js')
    assert.deepEqual([status, headers['content-type']], [200, 'text/javascript; charset=utf-8'])
    assert.equal(headers['cache-control'], 'no-cache')
    assert.match(headers['content-security-policy']!, /worker-src 'self'/)
    assert.doesNotMatch(text, /^(import|export) /m)
  })

  test('a request with the ETag of an unchanged file gets a 304', async () => {
    const { headers } = await h.call('GET', '/web/app.js')
    assert.equal(headers['cache-control'], 'no-cache')
    const again = await h.call('GET', '/web/app.js', { headers: { 'if-none-match': headers.etag! } })
    assert.deepEqual([again.status, again.text], [304, ''])
  })

  for (const path of [
    '/web/',
    '/web/index.html',
    '/web/../app.ts',
    '/web/..%2fapp.ts',
    '/web/%2e%2e/routes.ts',
    '/client/..%2fpackage.json',
    '/client/index.d.ts',
    '/client/inbox/',
  ]) {
    test(`GET ${path} gets a 404`, async () => {
      assert.equal((await h.call('GET', path)).status, 404)
    })
  }

  test('WEB=off removes the page but not the API', async () => {
    await withSettings({ WEB: 'off' }, async other => {
      for (const path of ['/', '/web/app.js', '/client/index.js', '/service-worker.js', '/manifest.webmanifest']) {
        assert.equal((await other.call('GET', path)).status, 404, path)
      }
      assert.equal((await other.call('GET', '/api/v1/game-levels')).status, 200)
    })
  })
})

describe('POST /dev/play', { timeout: 60_000 }, () => {
  const url = () => `/dev/play?key=${h.ctx.mailbox!.key}`
  const play = (token: string | undefined, body: unknown, headers: Record<string, string> = LOCAL) =>
    h.call('POST', url(), { token, body, headers })

  test('all steps of /dev/play together send notifications of all ten types to the caller, and none to other users', async () => {
    const [user, other] = [await makeUser(h), await makeUser(h)]
    for (let step = 0, steps = 1; step < steps; step += 1) {
      const { status, body } = await play(user.token, { round: 7, step })
      assert.equal(status, 200)
      assert.equal(body.data.step, step)
      steps = body.data.steps
      h.clock.advance(1000)
    }
    const list = await h.call('GET', '/api/v1/notifications?per_page=100', { token: user.token })
    assert.equal(new Set(list.body.data.map(({ type }: { type: string }) => type)).size, 10)
    const others = await h.call('GET', '/api/v1/notifications', { token: other.token })
    assert.equal(others.body.meta.total, 0)
  })

  test('the cancellation at the end of the demo is urgent at each hour of the day, so its mail does not wait', () => {
    for (let hour = 0; hour < 24; hour += 1) {
      const now = new Date(Date.UTC(2026, 10, 28, hour, 30))
      const { type, data } = demoEvent(1, 0, STORY_LENGTH - 1, now)
      assert.equal(type, 'game_cancelled')
      assert.equal(isUrgent(type, new Date(data.starts_at), now), true, now.toISOString())
    }
  })

  test('POST /dev/play with a step after the last one gets a 404, and with an invalid step or round a 422', async () => {
    const { token } = await makeUser(h)
    assert.equal((await play(token, { round: 1, step: 1000 })).status, 404)
    assert.equal((await play(token, { round: 1, step: -1 })).status, 422)
    assert.equal((await play(token, { round: 500_000, step: 0 })).status, 422)
  })

  test('POST /dev/play without a token gets a 401, so a page of another origin cannot use it', async () => {
    assert.equal((await play(undefined, { round: 1, step: 0 })).status, 401)
  })

  test('POST /dev/play from another host, without the key of the mailbox, or to a service that sends real mail, gets a 404', async () => {
    const { token } = await makeUser(h)
    const body = { round: 1, step: 0 }
    assert.equal((await play(token, body, { host: 'courtside.example' })).status, 404)
    assert.equal((await play(token, body, { ...LOCAL, 'x-forwarded-for': '127.0.0.1' })).status, 404)
    const far = await h.call('POST', url(), { token, body, headers: LOCAL, remoteAddress: '192.0.2.1' })
    assert.equal(far.status, 404)
    assert.equal((await h.call('POST', url(), { headers: { host: 'courtside.example' } })).status, 404)
    assert.equal((await h.call('POST', '/dev/play', { token, body, headers: LOCAL })).status, 404)
    await withSettings({ SMTP_URL: 'smtp://127.0.0.1:1', DEV_MAILBOX: 'off' }, async other => {
      assert.equal((await other.call('POST', url(), { token, headers: LOCAL, body })).status, 404)
    })
  })
})

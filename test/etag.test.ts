import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { harness } from './support/app.ts'
import { listen } from './support/event-stream.ts'
import { findFreePort, isInstalled, startNginx } from './support/reverse-proxies.ts'

const h = harness()

const PATHS = ['/', '/web/app.js', '/client/index.js', '/docs', '/api/v1/openapi.json']

describe('If-None-Match', { timeout: 60_000 }, () => {
  for (const path of PATHS) {
    test(`GET ${path} compares ETags weakly, in lists and with *, as RFC 9110 §13.1.2 requires`, async () => {
      const etag = (await h.call('GET', path)).headers.etag!
      const ask = async (value: string) => (await h.call('GET', path, { headers: { 'if-none-match': value } })).status
      for (const value of [etag, `W/${etag}`, `"x", ${etag}`, `W/"x",W/${etag} , "y"`, '*', ' * ', `"a,b", ${etag}`]) {
        assert.equal(await ask(value), 304, value)
      }
      for (const value of ['"x"', 'W/"x"', '', '"*"', etag.slice(1, -1), `${etag.slice(0, -2)}"`, '"']) {
        assert.equal(await ask(value), 200, value)
      }
    })
  }

  const hasNginx = isInstalled('nginx')
  const skip = !hasNginx && !process.env.CI && 'nginx is not installed'
  test('behind nginx with gzip, a browser gets a 304 for a page that it already has', { skip }, async () => {
    assert.ok(hasNginx, 'CI needs nginx')
    const folder = await mkdtemp(join(tmpdir(), 'courtside-nginx-'))
    const port = await findFreePort()
    const nginx = await startNginx(
      `server {
        listen 127.0.0.1:${port}; gzip on; gzip_types *; gzip_min_length 1; gzip_proxied any;
        location / { proxy_pass ${await listen(h.app)}; }
      }`,
      port,
      folder,
    )
    try {
      for (const path of PATHS) {
        const first = await fetch(nginx.address + path, { headers: { 'accept-encoding': 'gzip' } })
        await first.arrayBuffer()
        assert.equal(first.headers.get('content-encoding'), 'gzip')
        const etag = first.headers.get('etag')!
        assert.match(etag, /^W\//)
        const again = await fetch(nginx.address + path, {
          headers: { 'accept-encoding': 'gzip', 'if-none-match': etag },
        })
        assert.equal(again.status, 304, path)
      }
    } finally {
      await nginx.stop()
      await rm(folder, { recursive: true, force: true })
    }
  })
})

import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { harness } from './support/app.ts'
import { listen } from './support/event-stream.ts'
import { waitUntil } from './support/wait-until.ts'

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

  const hasNginx = isInstalled()
  const skip = !hasNginx && !process.env.CI && 'nginx is not installed'
  test('behind nginx with gzip, a browser gets a 304 for a page that it already has', { skip }, async () => {
    assert.ok(hasNginx, 'CI needs nginx')
    const nginx = await startNginx(await listen(h.app))
    try {
      for (const path of PATHS) {
        const first = await fetch(nginx.url + path, { headers: { 'accept-encoding': 'gzip' } })
        await first.arrayBuffer()
        assert.equal(first.headers.get('content-encoding'), 'gzip')
        const etag = first.headers.get('etag')!
        assert.match(etag, /^W\//)
        const again = await fetch(nginx.url + path, { headers: { 'accept-encoding': 'gzip', 'if-none-match': etag } })
        assert.equal(again.status, 304, path)
      }
    } finally {
      await nginx.stop()
    }
  })
})

function isInstalled(): boolean {
  try {
    execFileSync('nginx', ['-v'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/** Starts nginx with gzip in front of a server, on a free port. */
async function startNginx(upstream: string) {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as { port: number }
  await once(probe.close(), 'close')
  const folder = await mkdtemp(join(tmpdir(), 'courtside-nginx-'))
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map(name => `${name}_temp_path ${folder}/${name};`)
    .join(' ')
  await writeFile(
    join(folder, 'nginx.conf'),
    `daemon off; pid ${folder}/pid; error_log stderr; events {}
    http {
      ${temporary} access_log off; gzip on; gzip_types *; gzip_min_length 1; gzip_proxied any;
      server { listen 127.0.0.1:${port}; location / { proxy_pass ${upstream}; } }
    }`,
  )
  const child = spawn('nginx', ['-c', join(folder, 'nginx.conf'), '-p', folder], { stdio: 'ignore' })
  const url = `http://127.0.0.1:${port}`
  await waitUntil(() =>
    fetch(`${url}/healthz`).then(
      ({ ok }) => ok,
      () => false,
    ),
  )
  return {
    url,
    async stop() {
      child.kill()
      await once(child, 'exit')
      await rm(folder, { recursive: true, force: true })
    },
  }
}

import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { findFreePort, isInstalled, startNginx } from './support/reverse-proxies.ts'
import { type Service, startService } from './support/service.ts'

const hasNginx = isInstalled('nginx')
const skip = !hasNginx && !process.env.CI && 'nginx is not installed'

// Each entry is a `location /` that people copy from guides. `%` stands for the address of the service.
const LOCATIONS = {
  'by default': 'proxy_pass %;',
  'with HTTP/1.1': 'proxy_pass %; proxy_http_version 1.1; proxy_set_header Connection "";',
  'with a local Host': 'proxy_pass %; proxy_http_version 1.1; proxy_set_header Host localhost;',
  'with X-Forwarded-For':
    'proxy_pass %; proxy_http_version 1.1; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;',
  'with X-Client-IP': 'proxy_pass %; proxy_http_version 1.1; proxy_set_header X-Client-IP $remote_addr;',
}

describe('the development mailbox behind nginx', {
  skip,
  timeout: 120_000,
}, () => {
  let folder: string
  let service: Service
  const ports: Record<string, number> = {}
  let nginx: Awaited<ReturnType<typeof startNginx>>

  before(async () => {
    assert.ok(hasNginx, 'CI needs nginx')
    folder = await mkdtemp(join(tmpdir(), 'courtside-nginx-'))
    service = await startService({ DATA_DIR: join(folder, 'data') })
    for (const name of Object.keys(LOCATIONS)) ports[name] = await findFreePort()
    const servers = Object.entries(LOCATIONS).map(
      ([name, location]) =>
        `server { listen 127.0.0.1:${ports[name]}; location / { ${location.replace('%', service.address)} } }`,
    )
    nginx = await startNginx(servers.join('\n'), ports['by default']!, folder)
  })

  after(async () => {
    await nginx?.stop()
    await service?.stop()
    await rm(folder, { recursive: true, force: true })
  })

  const mailbox = () => new URL(service.listening.mailbox!)

  test('the address that the start prints shows the mailbox on this machine, and without its key it gets a 404', async () => {
    assert.equal((await fetch(mailbox())).status, 200)
    assert.ok(service.listening.page!.endsWith(`/#mailbox=${mailbox().searchParams.get('key')}`))
    for (const path of ['/dev/mailbox', '/dev/mailbox.json', '/dev/mailbox.json?key=', '/dev/mailbox.json?key=x']) {
      assert.equal((await fetch(service.address + path)).status, 404)
    }
  })

  for (const name of Object.keys(LOCATIONS)) {
    test(`a stranger does not see the mailbox through nginx ${name}`, async () => {
      for (const path of ['/dev/mailbox', '/dev/mailbox.json']) {
        assert.equal(await get(ports[name]!, path), 404)
        assert.equal(await get(ports[name]!, path, 'demo.example'), 404)
      }
    })
  }

  test('through nginx, by default or with headers that name the client, even a request with the key gets a 404', async () => {
    for (const name of ['by default', 'with X-Forwarded-For', 'with X-Client-IP']) {
      assert.equal(await get(ports[name]!, `/dev/mailbox.json${mailbox().search}`), 404)
    }
  })

  test('/readyz reports nginx by default as an undeclared proxy', async () => {
    const ready = (await (await fetch(`${service.address}/readyz`)).json()) as { warning?: string }
    assert.match(ready.warning ?? '', /TRUST_PROXY/)
  })
})

/** Sends a GET request with any Host header. @returns the status of the answer */
function get(port: number, path: string, host = 'localhost'): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, path, headers: { host } }, answer => {
      answer.resume()
      resolve(answer.statusCode!)
    })
    sent.on('error', reject)
    sent.end()
  })
}

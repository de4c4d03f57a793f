import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { explainListenError } from '../src/http/listen-error.ts'
import { startService } from './support/service.ts'

describe('an address on which the service cannot listen', () => {
  test('if the port is in use, the error names PORT, and no database starts', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'courtside-address-'))
    const dataDir = join(folder, 'data')
    const other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    const { port } = other.address() as AddressInfo
    await assert.rejects(
      startService({ DATA_DIR: dataDir, PORT: String(port) }),
      new RegExp(
        `PORT: another process already listens on the port ${port} of 127.0.0.1. Stop it, or set another PORT.`,
      ),
    )
    assert.ok(!existsSync(dataDir))
    other.close()
    await rm(folder, { recursive: true })
  })

  test('if the host is not an address of this machine, the error names HOST', async () => {
    // The block 192.0.2.0/24 is reserved for documentation.
    const env = { DATA_DIR: join(tmpdir(), 'courtside-never-created'), HOST: '192.0.2.1', DEV_MAILBOX: 'on' }
    await assert.rejects(startService(env), /HOST: 192\.0\.2\.1 is not an address of this machine\. Set another HOST\./)
    assert.ok(!existsSync(env.DATA_DIR))
  })

  test('if the user may not use the port, the error names PORT, and other errors stay as they are', () => {
    const denied = Object.assign(new Error('listen EACCES'), { code: 'EACCES' })
    assert.match(
      explainListenError(denied, { host: '::', port: 80 }).message,
      /^PORT: .* the port 80\. Set a PORT from 1024/,
    )
    const other = Object.assign(new Error('listen EMFILE'), { code: 'EMFILE' })
    assert.equal(explainListenError(other, { host: '::', port: 80 }), other)
  })
})

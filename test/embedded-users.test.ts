import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmod, chown, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, describe, test } from 'node:test'

const ROOT = 0
const NOBODY = 65_534

describe('who runs the embedded database', { skip: process.getuid?.() !== ROOT && 'only root can be another' }, () => {
  let checkout: string
  let data: string
  // With programs that refuse in their place, as in a container without user namespaces.
  let refused: string

  before(async () => {
    checkout = await mkdtemp(join(tmpdir(), 'courtside-checkout-'))
    for (const part of ['bin', 'src', 'migrations', 'node_modules', 'package.json']) {
      execFileSync('cp', ['-a', new URL(`../${part}`, import.meta.url).pathname, checkout])
    }
    refused = join(checkout, 'refused')
    await mkdir(refused)
    await writeFile(join(refused, 'unshare'), '#!/bin/sh\necho "unshare failed: Operation not permitted" >&2\nexit 1\n')
    await chmod(join(refused, 'unshare'), 0o755)
  })
  after(() => rm(checkout, { recursive: true, force: true }))

  beforeEach(async () => {
    await chmod(checkout, 0o755)
    data = await mkdtemp(join(checkout, 'data-'))
  })

  /** Starts and stops a database in the checkout, in a process of the given user. @returns what it printed */
  function startAs(uid: number, { path = process.env.PATH!, bin = '', platform = process.platform as string } = {}) {
    const script = `import { statSync } from 'node:fs'
      import { startEmbedded } from ${JSON.stringify(join(checkout, 'src/embedded/server.ts'))}
      Object.defineProperty(process, 'platform', { value: '${platform}' })
      try {
        const bin = ${JSON.stringify(bin)} || undefined
        const started = await startEmbedded(${JSON.stringify(data)}, { info() {}, error() {} }, { bin })
        console.log('owner', statSync(${JSON.stringify(join(data, 'postgres/postmaster.pid'))}).uid)
        await started.stop()
      } catch (error) {
        console.log(error.message)
      }`
    const node = join(checkout, 'node_modules/node/bin/node')
    const options = { uid, gid: uid, cwd: '/', encoding: 'utf8' as const, env: { PATH: path } }
    return execFileSync(node, ['--input-type=module', '-e', script], options)
  }

  test('an ordinary user needs nothing more', async () => {
    await chown(data, NOBODY, NOBODY)
    assert.equal(startAs(NOBODY, { path: '' }), `owner ${NOBODY}\n`)
  })

  test('root in a closed checkout: its files stay root’s', async () => {
    await chmod(checkout, 0o700)
    assert.equal(startAs(ROOT), `owner ${ROOT}\n`)
  })

  test('root without user namespaces: as the real nobody, and back, with the files following', () => {
    assert.equal(startAs(ROOT, { path: `${refused}:${process.env.PATH}` }), `owner ${NOBODY}\n`)
    assert.equal(startAs(ROOT), `owner ${ROOT}\n`)
    // An empty PATH has no unshare at all.
    assert.equal(startAs(ROOT, { path: '' }), `owner ${NOBODY}\n`)
  })

  const TO_DO =
    /as an ordinary user, (move it|set DATA_DIR) to a folder that others can (read|reach), or (set )?DATABASE_URL/

  test('root without user namespaces in a closed checkout: what to do is said', async () => {
    await chmod(checkout, 0o700)
    assert.match(startAs(ROOT, { path: refused }), TO_DO)
  })

  test('root without user namespaces and data in a closed folder: what to do is said', async () => {
    data = join(await mkdtemp(join(checkout, 'closed-')), 'data')
    assert.match(startAs(ROOT, { path: refused }), TO_DO)
  })

  test('programs that do not run, and a platform without any: what to do is said', async () => {
    assert.match(startAs(ROOT, { bin: refused }), /programs in .*refused do not run here: .* set DATABASE_URL/)
    assert.match(startAs(ROOT, { platform: 'sunos' }), /no embedded PostgreSQL for sunos on .* Set DATABASE_URL/)
  })

  test('the programs of another PostgreSQL serve as well', { skip: !elsewhere() && 'there is no other here' }, () => {
    assert.equal(startAs(ROOT, { bin: elsewhere()! }), `owner ${ROOT}\n`)
  })
})

/** The folder of the programs of a PostgreSQL of this machine. */
function elsewhere(): string | undefined {
  try {
    return execFileSync('pg_config', ['--bindir'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  } catch {
    return undefined
  }
}

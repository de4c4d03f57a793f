import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmod, chown, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, describe, test } from 'node:test'

const ROOT = 0
const NOBODY = 65_534

describe('the user that runs the embedded database', {
  skip: process.getuid?.() !== ROOT && 'only root can start a process as another user',
}, () => {
  let checkout: string
  let data: string
  // This folder contains a program `unshare` that always fails, as it does in a container without user namespaces.
  let failingUnshare: string

  before(async () => {
    checkout = await mkdtemp(join(tmpdir(), 'courtside-checkout-'))
    for (const part of ['bin', 'src', 'migrations', 'node_modules', 'package.json']) {
      execFileSync('cp', ['-a', new URL(`../${part}`, import.meta.url).pathname, checkout])
    }
    failingUnshare = join(checkout, 'failing-unshare')
    await mkdir(failingUnshare)
    await writeFile(
      join(failingUnshare, 'unshare'),
      '#!/bin/sh\necho "unshare failed: Operation not permitted" >&2\nexit 1\n',
    )
    await chmod(join(failingUnshare, 'unshare'), 0o755)
  })
  after(() => rm(checkout, { recursive: true, force: true }))

  beforeEach(async () => {
    await chmod(checkout, 0o755)
    data = await mkdtemp(join(checkout, 'data-'))
  })

  /**
   * Starts and stops a database in a process of the user `uid`.
   * @returns the printed line: the owner of the database files, or the message of the error
   */
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
    const node = join(checkout, 'bin/node')
    const options = { uid, gid: uid, cwd: '/', encoding: 'utf8' as const, env: { PATH: path } }
    return execFileSync(node, ['--input-type=module', '-e', script], options)
  }

  test('an ordinary user can run the database even with an empty PATH, and the files belong to this user', async () => {
    await chown(data, NOBODY, NOBODY)
    assert.equal(startAs(NOBODY, { path: '' }), `owner ${NOBODY}\n`)
  })

  test('root can run the database in a checkout that only root can enter, and the files belong to root', async () => {
    await chmod(checkout, 0o700)
    assert.equal(startAs(ROOT), `owner ${ROOT}\n`)
  })

  test('if user namespaces are missing, root runs the database as the user nobody, who owns the files', () => {
    assert.equal(startAs(ROOT, { path: `${failingUnshare}:${process.env.PATH}` }), `owner ${NOBODY}\n`)
    assert.equal(startAs(ROOT), `owner ${ROOT}\n`)
    // With an empty PATH, the process finds no `unshare` program.
    assert.equal(startAs(ROOT, { path: '' }), `owner ${NOBODY}\n`)
  })

  const ADVICE =
    /as an ordinary user, (move it|set DATA_DIR) to a folder that others can (read|reach), or (set )?DATABASE_URL/

  test('if user namespaces are missing and only root can enter the checkout, the error message lists remedies', async () => {
    await chmod(checkout, 0o700)
    assert.match(startAs(ROOT, { path: failingUnshare }), ADVICE)
  })

  test('if user namespaces are missing and only root can enter the parent folder, the error message lists remedies', async () => {
    data = join(await mkdtemp(join(checkout, 'closed-')), 'data')
    assert.match(startAs(ROOT, { path: failingUnshare }), ADVICE)
  })

  test('if the PostgreSQL programs do not run or do not exist, the error message names DATABASE_URL as a remedy', async () => {
    assert.match(
      startAs(ROOT, { bin: failingUnshare }),
      /programs in .*failing-unshare do not run here: .* set DATABASE_URL/,
    )
    assert.match(startAs(ROOT, { platform: 'sunos' }), /no embedded PostgreSQL for sunos on .* Set DATABASE_URL/)
  })

  test('startEmbedded can run the database with the programs of an installed PostgreSQL', {
    skip: !findInstalledPrograms() && 'no other PostgreSQL is installed',
  }, () => {
    assert.equal(startAs(ROOT, { bin: findInstalledPrograms()! }), `owner ${ROOT}\n`)
  })
})

/** Returns the folder with the programs of an installed PostgreSQL, or `undefined` if none is installed. */
function findInstalledPrograms(): string | undefined {
  try {
    return execFileSync('pg_config', ['--bindir'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  } catch {
    return undefined
  }
}

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmod, chown, lstat, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, describe, test } from 'node:test'
import { DATABASE_UID } from '../src/embedded/database-user.ts'
import { UNPRIVILEGED_UID } from './support/unprivileged-user.ts'

const ROOT = 0
// A user id without an entry in /etc/passwd, as containers often have it.
const STRANGER = 54_321

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
   * @returns the printed line: the owner of the database files and of the server's process, or the message of the error
   */
  function startAs(uid: number, { path = process.env.PATH!, bin = '', platform = process.platform as string } = {}) {
    const script = `import { readFileSync, statSync } from 'node:fs'
      import { startEmbedded } from ${JSON.stringify(join(checkout, 'src/embedded/server.ts'))}
      Object.defineProperty(process, 'platform', { value: '${platform}' })
      try {
        const bin = ${JSON.stringify(bin)} || undefined
        const started = await startEmbedded(${JSON.stringify(data)}, { info() {}, warn() {}, error() {} }, { bin })
        const lock = ${JSON.stringify(join(data, 'postgres/postmaster.pid'))}
        const pid = readFileSync(lock, 'utf8').split('\\n')[0]
        console.log('owner', statSync(lock).uid, 'process', statSync('/proc/' + pid).uid)
        await started.stop()
      } catch (error) {
        console.log(error.message)
      }`
    const node = join(checkout, 'bin/node')
    const options = { uid, gid: uid, cwd: '/', encoding: 'utf8' as const, env: { PATH: path } }
    return execFileSync(node, ['--input-type=module', '-e', script], options)
  }

  test('an ordinary user can run the database even with an empty PATH, and the files belong to this user', async () => {
    await chown(data, UNPRIVILEGED_UID, UNPRIVILEGED_UID)
    assert.equal(startAs(UNPRIVILEGED_UID, { path: '' }), runsAs(UNPRIVILEGED_UID))
  })

  test('root can run the database in a checkout that only root can enter, and the files belong to root', async () => {
    await chmod(checkout, 0o700)
    assert.equal(startAs(ROOT), runsAs(ROOT))
  })

  test('root runs the database as a separate user, and the next start works without user namespaces too', () => {
    assert.equal(startAs(ROOT), runsAs(DATABASE_UID))
    assert.equal(startAs(ROOT, { path: `${failingUnshare}:${process.env.PATH}` }), runsAs(DATABASE_UID))
    // With an empty PATH, the process finds no `unshare` program.
    assert.equal(startAs(ROOT, { path: '' }), runsAs(DATABASE_UID))
  })

  test('without user namespaces, root can create the database too', () => {
    assert.equal(startAs(ROOT, { path: `${failingUnshare}:${process.env.PATH}` }), runsAs(DATABASE_UID))
  })

  test('a database of root starts as the separate user after root has opened the checkout, but then never as root again', async () => {
    await chmod(checkout, 0o700)
    assert.equal(startAs(ROOT), runsAs(ROOT))
    await chmod(checkout, 0o755)
    assert.equal(startAs(ROOT), runsAs(DATABASE_UID))
    await chmod(checkout, 0o700)
    // The separate user could have named a program in the configuration of its cluster.
    for (const owner of [DATABASE_UID, UNPRIVILEGED_UID]) {
      await chown(join(data, 'postgres'), owner, owner)
      assert.match(
        startAs(ROOT),
        new RegExp(
          `^DATA_DIR: .*/postgres belongs to the user id ${owner}\\. The user id 61042 .*\\. Move them to folders`,
        ),
      )
      assert.equal((await lstat(join(data, 'postgres/PG_VERSION'))).uid, DATABASE_UID)
    }
    await chmod(checkout, 0o755)
    assert.equal(startAs(ROOT), runsAs(DATABASE_UID))
  })

  test('if a signal ends the programs of the separate user, the database does not get the rights of root', async () => {
    const bin = join(checkout, 'killed-programs')
    await mkdir(bin, { recursive: true })
    await writeFile(join(bin, 'initdb'), '#!/bin/sh\necho "initdb (PostgreSQL) 18.4"\n', { mode: 0o755 })
    await writeFile(join(bin, 'postgres'), '#!/bin/sh\nkill -KILL $$\n', { mode: 0o755 })
    for (const name of ['initdb', 'postgres']) await chmod(join(bin, name), 0o755)
    assert.match(startAs(ROOT, { bin }), /killed-programs\/postgres failed: .*SIGKILL/)
    assert.deepEqual(
      (await readdir(data)).filter(name => name.startsWith('postgres')),
      [],
    )
  })

  test('root refuses the data folder of an ordinary user and changes nothing, so this user can still start', async () => {
    await chown(data, STRANGER, STRANGER)
    assert.match(startAs(ROOT), /DATA_DIR: .* belongs to the user id 54321, .* Start Courtside as this user/)
    assert.deepEqual(await readdir(data), [])
    for (const expected of [runsAs(STRANGER), 'refused', runsAs(STRANGER)]) {
      if (expected === 'refused') assert.match(startAs(ROOT), /^DATA_DIR: .* belongs to the user id 54321/)
      else assert.equal(startAs(STRANGER), expected)
      const names = ['', ...(await readdir(data, { recursive: true }))]
      const owners = await Promise.all(names.map(async name => (await lstat(join(data, name))).uid))
      assert.deepEqual([...new Set(owners)], [STRANGER])
    }
  })

  test('if root may not run the database as the owner of the cluster, the start fails and changes no owner', async () => {
    await chown(data, STRANGER, STRANGER)
    assert.equal(startAs(STRANGER), runsAs(STRANGER))
    await chown(data, ROOT, ROOT)
    await chmod(checkout, 0o700)
    assert.match(startAs(ROOT), /DATA_DIR: .*postgres belongs to the user id 54321, who cannot run the programs in/)
    await chmod(checkout, 0o755)
    await chown(data, STRANGER, STRANGER)
    await rm(join(data, 'socket'), { recursive: true })
    assert.equal((await lstat(join(data, 'postgres/PG_VERSION'))).uid, STRANGER)
    assert.equal(startAs(STRANGER), runsAs(STRANGER))
  })

  test('a user without an entry in /etc/passwd can create the database, or the error message says what to add', async () => {
    await chown(data, STRANGER, STRANGER)
    assert.match(
      startAs(STRANGER, { path: failingUnshare }),
      /^The user id 54321 has no entry in \/etc\/passwd, and initdb needs one\. Add an entry, .* or set DATABASE_URL/,
    )
    assert.equal(startAs(STRANGER), runsAs(STRANGER))
  })

  test('a start on the database of another user fails with an error that names both users', async () => {
    assert.equal(startAs(ROOT), runsAs(DATABASE_UID))
    await chown(data, STRANGER, STRANGER)
    assert.match(startAs(STRANGER), /owner\.lock cannot be opened for writing\. It must belong to the user/)
    for (const name of ['owner.lock', 'postgres.log', 'socket']) await chown(join(data, name), STRANGER, STRANGER)
    assert.match(
      startAs(STRANGER),
      /postgres belongs to the user id 61042, but this process runs as the user id 54321\. .* chown -R 54321 /,
    )
  })

  const ADVICE = /as an ordinary user, move it and DATA_DIR to folders that others can reach, or set DATABASE_URL/

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
    assert.equal(startAs(ROOT, { bin: findInstalledPrograms()! }), runsAs(DATABASE_UID))
  })
})

/** Returns what `startAs` prints if the files and the process of the server belong to a user. */
function runsAs(uid: number): string {
  return `owner ${uid} process ${uid}\n`
}

/** Returns the folder with the programs of an installed PostgreSQL, or `undefined` if none is installed. */
function findInstalledPrograms(): string | undefined {
  try {
    return execFileSync('pg_config', ['--bindir'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  } catch {
    return undefined
  }
}

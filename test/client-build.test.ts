import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { existsSync, globSync, statSync } from 'node:fs'
import { chmod, cp, mkdtemp, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { promisify } from 'node:util'
import { settingsFor } from './support/app.ts'
import { testDatabase } from './support/database.ts'
import { startService } from './support/service.ts'
import { findSkipReason, UNPRIVILEGED_UID } from './support/unprivileged-user.ts'

const ROOT = new URL('..', import.meta.url).pathname
const AS_USER_NOBODY = { uid: UNPRIVILEGED_UID, gid: UNPRIVILEGED_UID }

/**
 * Copies the program without `client/dist` into a new folder.
 * @param hasPackages whether the copy shares the packages of this checkout, which include the compiler
 */
async function withCopy(hasPackages: boolean, use: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'courtside-build-'))
  try {
    for (const part of ['bin', 'src', 'migrations', 'package.json']) {
      await cp(join(ROOT, part), join(folder, part), { recursive: true })
    }
    for (const part of ['src', 'scripts', 'package.json', 'tsconfig.json']) {
      await cp(join(ROOT, 'client', part), join(folder, 'client', part), { recursive: true })
    }
    if (hasPackages) await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
    await use(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

function build(folder: string, ...args: string[]): string {
  return execFileSync(process.execPath, [join(folder, 'client/scripts/build.js'), ...args], { encoding: 'utf8' })
}

describe('client/scripts/build.js', { timeout: 120_000 }, () => {
  test('with --if-changed, the client is built if it is missing or older than a source file, and only then', () =>
    withCopy(true, async folder => {
      const index = join(folder, 'client/dist/index.js')
      build(folder, '--if-changed')
      assert.ok(existsSync(join(folder, 'client/dist/inbox/element.js')))
      const first = statSync(index).ino
      build(folder, '--if-changed')
      assert.equal(statSync(index).ino, first)
      await writeFile(join(folder, 'client/dist/old.js'), '')
      const later = new Date(Date.now() + 5_000)
      await utimes(join(folder, 'client/src/inbox/element.ts'), later, later)
      build(folder, '--if-changed')
      assert.notEqual(statSync(index).ino, first)
      assert.ok(!existsSync(join(folder, 'client/dist/old.js')))
    }))

  test('if the client does not compile, the previous client/dist stays, and the exit code is not 0', () =>
    withCopy(true, async folder => {
      build(folder)
      await writeFile(join(folder, 'client/src/wrong.ts'), 'export const wrong: number = "text"\n')
      assert.throws(() => build(folder))
      assert.ok(existsSync(join(folder, 'client/dist/index.js')))
      assert.ok(!existsSync(join(folder, 'client/dist/wrong.js')))
    }))

  test('three builds at the same time all succeed, and leave one complete client/dist', () =>
    withCopy(true, async folder => {
      const script = join(folder, 'client/scripts/build.js')
      const builds = [1, 2, 3].map(() => promisify(execFile)(process.execPath, [script, '--if-changed']))
      await Promise.all(builds)
      assert.ok(existsSync(join(folder, 'client/dist/inbox/element.js')))
      assert.deepEqual(globSync('client/.dist-*', { cwd: folder }), [])
    }))

  test(
    'if the user may not write to client/, npm start says so, and the service still starts',
    {
      skip: findSkipReason(),
    },
    () =>
      withCopy(true, async folder => {
        await chmod(folder, 0o755)
        const script = join(folder, 'client/scripts/build.js')
        const run = (...args: string[]) =>
          execFileSync(process.execPath, [script, ...args], { ...AS_USER_NOBODY, encoding: 'utf8' })
        assert.match(run('--if-changed'), /EACCES.*npm run build/)
        assert.throws(() => execFileSync(process.execPath, [script], { ...AS_USER_NOBODY, stdio: 'ignore' }))
      }),
  )

  test('without the compiler, client/scripts/build.js says what is missing and succeeds', () =>
    withCopy(false, async folder => {
      assert.match(build(folder), /npm ci --omit=dev.* compiler/)
      assert.ok(!existsSync(join(folder, 'client/dist')))
    }))
})

test('without client/dist, the service logs a warning that names npm run build, and serves the API without the page', () =>
  withCopy(true, async folder => {
    const database = await testDatabase()
    const service = await startService(settingsFor(database.url), folder)
    try {
      assert.ok(service.lines.some(line => line.includes('client/dist is missing') && line.includes('npm run build')))
      assert.equal((await fetch(`${service.address}/`)).status, 404)
      assert.equal((await fetch(`${service.address}/api/v1/game-levels`)).status, 200)
    } finally {
      await service.stop()
      await database.drop()
    }
  }))

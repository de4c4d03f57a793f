import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, globSync } from 'node:fs'
import { chmod, chown, mkdir, mkdtemp, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { crc32 } from 'node:zlib'
import { copyProgram } from './support/service.ts'
import { AS_UNPRIVILEGED, findSkipReason, UNPRIVILEGED_UID } from './support/unprivileged-user.ts'

const user = process.getuid!()
const skip = findSkipReason()

let folder: string
let program: string
let cache: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'courtside-cache-'))
  program = join(folder, 'program')
  cache = join(program, `.compile-cache-${user}`)
  await mkdir(program)
  await copyProgram(program)
})
afterEach(() => rm(folder, { recursive: true, force: true }))

/** Runs `courtside help`, and returns the first line of its output. */
function runHelp(env: Record<string, string> = {}): string {
  const output = execFileSync(process.execPath, [join(program, 'bin/courtside.js'), 'help'], {
    cwd: folder,
    encoding: 'utf8',
    env: { PATH: process.env.PATH, TMPDIR: join(folder, 'tmp'), ...env },
  })
  return output.split('\n')[0]!
}

/** Replaces a word of src/main.ts in a cache, as an attacker with write access to the cache would do. */
async function poison(cacheFolder: string): Promise<void> {
  for (const path of globSync(join(cacheFolder, '*/*'))) {
    const file = await readFile(path)
    // The header has five numbers of four bytes. The last one is the checksum of the cached code.
    const header = 20
    const at = file.indexOf('Usage: npm run courtside -- COMMAND')
    if (at < 0) continue
    file.write('Owned', at)
    file.writeUInt32LE(crc32(file.subarray(header)), header - 4)
    await writeFile(path, file)
    return
  }
  throw new Error('The cache does not contain src/main.ts.')
}

const GOOD = 'Usage: npm run courtside -- COMMAND [--help]'
const POISONED = GOOD.replace('Usage', 'Owned')

describe('the compile cache', () => {
  test('the cache is in a folder of the program that only its user can enter, and not in /tmp', async () => {
    await mkdir(join(folder, 'tmp'))
    assert.equal(runHelp(), GOOD)
    assert.equal((await readdir(join(folder, 'tmp'))).length, 0)
    assert.ok(globSync(join(cache, '*/*')).length > 0)
    // This shows that the next tests would notice a poisoned cache.
    await poison(cache)
    assert.equal(runHelp(), POISONED)
  })

  test('a poisoned cache in /tmp has no effect', async () => {
    runHelp()
    await poison(cache)
    await mkdir(join(folder, 'tmp'))
    await rename(cache, join(folder, 'tmp/node-compile-cache'))
    assert.equal(runHelp(), GOOD)
  })

  for (const mode of [0o777, 0o770, 0o755, 0o707]) {
    test(`a poisoned cache with the mode ${mode.toString(8)} has no effect`, async () => {
      runHelp()
      await poison(cache)
      await chmod(cache, mode)
      assert.equal(runHelp(), GOOD)
    })
  }

  test('a poisoned cache of another user has no effect', { skip }, async () => {
    runHelp()
    await poison(cache)
    await chown(cache, UNPRIVILEGED_UID, UNPRIVILEGED_UID)
    assert.equal(runHelp(), GOOD)
  })

  test('a link to a poisoned cache has no effect', async () => {
    runHelp()
    await poison(cache)
    await rename(cache, join(folder, 'elsewhere'))
    await symlink(join(folder, 'elsewhere'), cache)
    assert.equal(runHelp(), GOOD)
  })

  test('a poisoned cache in a folder that others may write to has no effect', async () => {
    runHelp()
    await poison(cache)
    await chmod(program, 0o777)
    assert.equal(runHelp(), GOOD)
    await chmod(program, 0o755)
    await chmod(folder, 0o777)
    assert.equal(runHelp(), GOOD)
  })

  test('if the user may not write to the program, the cache is in DATA_DIR, unless others may write there', {
    skip,
  }, async () => {
    const data = join(folder, 'data')
    await chmod(folder, 0o755)
    const run = () =>
      execFileSync('setpriv', [...AS_UNPRIVILEGED, process.execPath, join(program, 'bin/courtside.js'), 'help'], {
        cwd: '/',
        encoding: 'utf8',
        env: { PATH: process.env.PATH, DATA_DIR: data },
      })
    assert.match(run(), /^Usage/)
    assert.ok(!existsSync(data), 'the cache alone creates no DATA_DIR')
    await mkdir(data)
    await chown(data, UNPRIVILEGED_UID, UNPRIVILEGED_UID)
    assert.match(run(), /^Usage/)
    assert.ok(globSync(join(data, 'compile-cache/*/*')).length > 0)
    await poison(join(data, 'compile-cache'))
    assert.match(run(), /^Owned/)
    await chmod(data, 0o777)
    assert.match(run(), /^Usage/)
  })
})

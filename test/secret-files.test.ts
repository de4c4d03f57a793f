import assert from 'node:assert/strict'
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { loadOrCreateSecret, newSecret } from '../src/secrets.ts'
import { courtside, startService } from './support/service.ts'

let dataDir: string
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'courtside-secrets-'))
})
// The tests add functions that stop what they have started. Hooks of a test would run after the removal of the folder.
const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanups.splice(0).reverse()) await cleanUp()
  await rm(dataDir, { recursive: true, force: true })
})

describe('a file with a secret', () => {
  for (const name of ['jwt-secret', 'intake-key']) {
    test(`if ${name} is empty, incomplete or a folder, the start fails with an error that names the path`, async () => {
      const path = join(dataDir, name)
      for (const text of ['', '\n', newSecret().slice(0, 20)]) {
        await writeFile(path, text)
        await assert.rejects(
          startService({ DATA_DIR: dataDir }),
          new RegExp(`${path} contains no secret\\. Delete the file`),
        )
      }
      await rm(path)
      await mkdir(path)
      await assert.rejects(
        startService({ DATA_DIR: dataDir }),
        new RegExp(`${path} is a folder, but it must be a file`),
      )
    })
  }

  test('if other users can read the file, the service logs a warning with the path and sets the mode of the file to 0600', async () => {
    const path = join(dataDir, 'jwt-secret')
    const secret = newSecret()
    await writeFile(path, secret)
    await chmod(path, 0o644)
    const service = await startService({ DATA_DIR: dataDir })
    cleanups.push(() => service.stop())
    const warnings = service.lines.filter(line => line.includes('Other users could read'))
    assert.equal(warnings.length, 1)
    assert.ok(warnings[0]!.includes(path) && warnings[0]!.includes('mode was 644'))
    assert.ok(!service.lines.join('\n').includes(secret))
    assert.equal((await stat(path)).mode & 0o777, 0o600)
  })

  test('if 20 callers create the file at the same time, all get the same secret and no draft is left', async () => {
    const loads = Array.from({ length: 20 }, () => loadOrCreateSecret(dataDir, 'jwt-secret', assert.fail))
    const secrets = new Set((await Promise.all(loads)).map(({ secret }) => secret))
    assert.equal(secrets.size, 1)
    assert.deepEqual(await readdir(dataDir), ['jwt-secret'])
    assert.equal((await readFile(join(dataDir, 'jwt-secret'), 'utf8')).trim(), [...secrets][0])
  })

  test('if there is no intake key, `courtside emit` says so and creates nothing', async () => {
    const path = join(dataDir, 'event.json')
    await writeFile(path, '{}')
    const { code, errors } = await courtside(['emit', path], { DATA_DIR: join(dataDir, 'missing') })
    assert.deepEqual(
      [code, errors],
      [1, `${join(dataDir, 'missing/intake-key')} does not exist. The service creates it when it starts.\n`],
    )
    assert.deepEqual(await readdir(dataDir), ['event.json'])
  })
})

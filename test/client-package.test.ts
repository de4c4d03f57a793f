import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'

const ROOT = new URL('..', import.meta.url)
const CLIENT = new URL('../client/', import.meta.url)
const read = (path: string) => readFile(new URL(path, CLIENT), 'utf8')

async function bundle(entries: readonly string[], platform: 'browser' | 'neutral'): Promise<Uint8Array> {
  const { outputFiles } = await build({
    stdin: {
      contents: entries.map(entry => `export * from './dist/${entry}'`).join('\n'),
      resolveDir: CLIENT.pathname,
    },
    bundle: true,
    minify: true,
    format: 'esm',
    platform,
    write: false,
    // The inbox loads this module when the user opens the settings.
    external: entries.includes('inbox.js') ? ['*/settings.js'] : [],
  })
  return outputFiles[0]!.contents
}

describe('the package courtside-client', { timeout: 60_000 }, () => {
  test('the types of the client are generated from the current OpenAPI document', async () => {
    const types = promisify(execFile)('npm', ['--workspace', 'client', 'run', 'types', '--', '--check'], { cwd: ROOT })
    await assert.doesNotReject(types, 'run: npm --workspace client run types')
  })

  // client/README.md states these sizes.
  for (const [entries, kib] of [
    [['index.js'], 7],
    [['index.js', 'inbox.js'], 14],
    [['inbox/settings.js'], 5],
    [['service-worker.js'], 1.5],
  ] as const) {
    test(`${entries.join(' and ')} of the client are at most ${kib} KiB, minified and gzipped`, async () => {
      const { length } = gzipSync(await bundle(entries, 'browser'))
      assert.ok(length <= kib * 1024, `${length} bytes`)
      const text = `${kib < 2 ? Math.round(length / 100) / 10 : Math.round(length / 1000)} kB`
      assert.ok((await read('README.md')).includes(text), `client/README.md does not say ${text}`)
    })
  }

  test('the client uses only APIs that browsers, React Native and Node 20 have in common', async () => {
    // With the platform "neutral", esbuild refuses modules that exist only on one platform.
    for (const entry of ['index.js', 'server.js']) {
      const code = new TextDecoder().decode(await bundle([entry], 'neutral'))
      assert.doesNotMatch(code, /AbortSignal\.|withResolvers|\bprocess\.|\bBuffer\b|\brequire\(/, entry)
    }
  })

  test('the built client package contains every module with its types, and the package has no dependencies', async () => {
    const { exports, dependencies } = JSON.parse(await read('package.json'))
    assert.equal(dependencies, undefined)
    for (const entry of ['.', './server', './inbox', './service-worker', './react']) {
      for (const kind of ['types', 'default']) {
        assert.ok(existsSync(new URL(exports[entry][kind], CLIENT)), `${kind} of ${entry}`)
      }
    }
  })

  test('the commands in client/README.md pack and install the client', async () => {
    const readme = await read('README.md')
    const { name, version } = JSON.parse(await read('package.json'))
    const tarball = `${name}-${version}.tgz`
    assert.ok(readme.includes(`npm run build\nnpm pack --workspace client\nnpm install ../courtside/${tarball}\n`))
    const app = await mkdtemp(join(tmpdir(), 'courtside-app-'))
    try {
      const npm = (cwd: string | URL, ...args: string[]) => promisify(execFile)('npm', args, { cwd })
      await npm(ROOT, 'pack', '--workspace', 'client', '--pack-destination', app)
      await writeFile(join(app, 'package.json'), '{"type": "module"}')
      await npm(app, 'install', '--offline', '--no-audit', '--no-fund', tarball)
      const program = `for (const entry of ['', '/server', '/inbox']) await import('courtside-client' + entry)`
      await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program], { cwd: app })
    } finally {
      await rm(app, { recursive: true })
    }
  })
})

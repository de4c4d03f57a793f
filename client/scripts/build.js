// Compiles the client into client/dist. With `--if-changed`, does this only if a source file is newer than the last
// build. This file is JavaScript, because it must also run with a Node that cannot run TypeScript.
import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const client = fileURLToPath(new URL('..', import.meta.url))
const dist = join(client, 'dist')

if (!process.argv.includes('--if-changed')) build()
else if (hasChanged()) buildIfPermitted()

function hasChanged() {
  const built = modifiedAt(join(dist, 'index.js'))
  const sources = ['tsconfig.json', 'src', ...readdirSync(join(client, 'src'), { recursive: true }).map(underSource)]
  return sources.some(path => modifiedAt(join(client, path)) > built)
}

function underSource(path) {
  return join('src', path)
}

/** Returns the time of the last change in milliseconds, or 0 if the file does not exist. */
function modifiedAt(path) {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0
}

/** The user who starts the service may be another user than the owner of the program. The service then still starts. */
function buildIfPermitted() {
  try {
    build()
  } catch (error) {
    if (!['EACCES', 'EPERM', 'EROFS'].includes(error.code)) throw error
    console.log(`client/dist is not rebuilt (${error.code}). Run \`npm run build\` as the owner of this folder.`)
  }
}

function build() {
  const compiler = findCompiler()
  if (compiler === undefined) {
    console.log('client/dist is not rebuilt, because `npm ci --omit=dev` does not install the compiler typescript.')
    return
  }
  // Another process may read client/dist at the same time, so the new folder replaces the old one only when it is
  // complete. It contains no file of an older build.
  const next = join(client, `.dist-${process.pid}`)
  mkdirSync(next)
  const { status } = spawnSync(process.execPath, [compiler, '-p', client, '--outDir', next], { stdio: 'inherit' })
  if (status === 0) replaceDist(next)
  rmSync(next, { recursive: true, force: true })
  process.exitCode = status ?? 1
}

function replaceDist(next) {
  rmSync(dist, { recursive: true, force: true })
  try {
    renameSync(next, dist)
  } catch (error) {
    // Another process has built the same files at the same time.
    if (!['ENOTEMPTY', 'EEXIST'].includes(error.code)) throw error
  }
}

function findCompiler() {
  // We use the TypeScript compiler of the root package. The client's own TypeScript is older, and only
  // openapi-typescript uses it.
  const root = new URL('../../package.json', import.meta.url)
  try {
    return createRequire(root).resolve('typescript/package.json').replace('package.json', 'bin/tsc')
  } catch {
    return undefined
  }
}

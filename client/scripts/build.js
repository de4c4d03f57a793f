// Compiles the client into client/dist. This file is JavaScript, because `npm ci` may run it with an older Node that
// cannot run TypeScript.
import { spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

const client = fileURLToPath(new URL('..', import.meta.url))
// We use the TypeScript compiler of the root package. The client's own TypeScript is older, and only openapi-typescript
// uses it.
const root = new URL('../../package.json', import.meta.url)
let compiler
try {
  compiler = createRequire(root).resolve('typescript/package.json').replace('package.json', 'bin/tsc')
} catch {
  // After `npm ci --omit=dev` there is no compiler. The operator can copy client/dist from another build.
  console.log('client/dist is not rebuilt because typescript is not installed')
}
if (compiler) {
  // The package contains all of client/dist, so files from an older checkout must not stay there.
  rmSync(new URL('../dist', import.meta.url), { recursive: true, force: true })
  process.exitCode = spawnSync(process.execPath, [compiler, '-p', client], { stdio: 'inherit' }).status ?? 1
}

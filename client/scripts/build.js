// Compiles the client into client/dist. `npm ci` runs this file, possibly under an older Node that runs no TypeScript.
import { spawnSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

const client = fileURLToPath(new URL('..', import.meta.url))
// The root's compiler. The client's own `typescript` is an older version that only openapi-typescript uses.
const root = new URL('../../package.json', import.meta.url)
let compiler
try {
  compiler = createRequire(root).resolve('typescript/package.json').replace('package.json', 'bin/tsc')
} catch {
  // After `npm ci --omit=dev` the operator must copy client/dist from another build to serve the page.
  console.log('client/dist is not rebuilt because typescript is not installed')
}
if (compiler) process.exitCode = spawnSync(process.execPath, [compiler, '-p', client], { stdio: 'inherit' }).status ?? 1

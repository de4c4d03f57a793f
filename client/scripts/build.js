// What `npm ci` runs: compiles the client into client/dist. JavaScript, since the Node that installs may be an older
// one.
import { spawnSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

const client = fileURLToPath(new URL('..', import.meta.url))
let compiler
try {
  compiler = createRequire(import.meta.url)
    .resolve('typescript/package.json')
    .replace('package.json', 'bin/tsc')
} catch {
  // `npm ci --omit=dev`: whoever wants the page there brings client/dist along.
  console.log('typescript is not installed, so client/dist is left as it is')
}
if (compiler) process.exitCode = spawnSync(process.execPath, [compiler, '-p', client], { stdio: 'inherit' }).status ?? 1

// `npm run build` does the work that the install scripts of packages would do. It compiles the client into client/dist,
// and links the libraries of the embedded PostgreSQL. `npm start` does both too, if they are missing. So an operator
// needs this command only if the user who starts the service may not write to the folder of the program.
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { findEmbeddedPrograms } from '../src/embedded/programs.ts'

const client = fileURLToPath(new URL('../client/scripts/build.js', import.meta.url))
process.exitCode = spawnSync(process.execPath, [client], { stdio: 'inherit' }).status ?? 1
try {
  findEmbeddedPrograms()
} catch (error) {
  // An installation with its own PostgreSQL does not need the embedded one.
  console.log((error as Error).message)
}

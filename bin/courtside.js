#!/usr/bin/env node
// Plain JavaScript: a Node that is too old to run TypeScript must still be able to print the message below.
import module from 'node:module'

const minMajor = 24
if (Number(process.versions.node.split('.')[0]) < minMajor) {
  console.error(
    `Bad configuration:\n  - Node ${process.versions.node} is too old; Courtside needs Node ${minMajor} or newer.` +
      '\n    `npm ci` installs one, and `npm start` uses it.',
  )
  process.exit(78)
}
// Halves the time that later starts spend on loading code.
module.enableCompileCache?.()
await import('../src/main.ts')

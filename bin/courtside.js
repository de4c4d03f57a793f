#!/usr/bin/env node
// Plain JavaScript, so that a Node too old to read the rest can say so.
import module from 'node:module'

const oldest = 24
if (Number(process.versions.node.split('.')[0]) < oldest) {
  console.error(
    `Bad configuration:\n  - Node ${process.versions.node} is too old; Courtside needs Node ${oldest} or newer.` +
      '\n    `npm ci` brings one along, and `npm start` uses it.',
  )
  process.exit(78)
}
// Halves the time that later starts spend on reading code.
module.enableCompileCache?.()
await import('../src/main.ts')

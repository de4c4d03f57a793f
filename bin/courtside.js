#!/usr/bin/env node
// This file is plain JavaScript, so a Node that is too old to run TypeScript can print the message below.
import module from 'node:module'

const minMajor = 24
if (Number(process.versions.node.split('.')[0]) < minMajor) {
  console.error(
    `Bad configuration:\n  - Node ${process.versions.node} is too old; Courtside needs Node ${minMajor} or newer.` +
      '\n    Run it with `npm start`: on Linux and Windows, `npm ci` installs Node 24, and npm uses it. Elsewhere, install ' +
      'Node 24.',
  )
  process.exit(78)
}
// The first startup stores the compiled code in a cache. In all later startups, the cache halves the time to load the
// code.
module.enableCompileCache?.()
await import('../src/main.ts')

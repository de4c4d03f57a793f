#!/usr/bin/env node
// This file is plain JavaScript, so a Node that is too old to run TypeScript can print the message below.
import { dirname, resolve } from 'node:path'

const minMajor = 24
if (Number(process.versions.node.split('.')[0]) < minMajor) {
  console.error(
    `Bad configuration:\n  - Node ${process.versions.node} is too old; Courtside needs Node ${minMajor} or newer.` +
      '\n    Run it with `npm start`: on Linux and Windows, `npm ci` installs Node 24, and npm uses it. Elsewhere, install ' +
      'Node 24.',
  )
  process.exit(78)
}
const { enableCompileCache } = await import('./compile-cache.js')
enableCompileCache(dirname(import.meta.dirname), resolve(process.env.DATA_DIR?.trim() || './data'))
await import('../src/main.ts')

// `npm run imports [-- FOLDER]` checks the imports between the files of a checkout. FOLDER is the root of the checkout.
// The default is this checkout.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { findCircles, type Graph, readGraph } from './imports/graph.ts'
import { findPlace, RULES } from './imports/rules.ts'

const root = process.argv[2] ?? new URL('..', import.meta.url).pathname
const graph = readGraph(root)
const refusals = [
  ...refuseByRule(graph),
  ...findCircles(graph).map(circle => `${circle.join('\n  → ')}\n  is a circle. Move the shared code to another file.`),
  ...refuseTwoWays(graph),
  ...refuseNodeHttp(graph),
]
if (refusals.length > 0) {
  console.error(refusals.join('\n'))
  process.exit(1)
}
const trees = [...new Set(graph.files.map(path => path.split('/')[0]))].sort().join(', ')
console.log(
  `${graph.files.length} files, ${graph.imports.length} imports in ${trees}, including type imports: all imports are allowed`,
)

function refuseByRule({ imports }: Graph): string[] {
  return imports.flatMap(edge =>
    RULES.filter(rule => rule.refuses(edge)).map(
      rule => `${edge.from} must not import ${edge.to}:\n  ${rule.because}.`,
    ),
  )
}

/**
 * Returns an error for every pair of folders in src/ that import each other, even if no two files import each other. A
 * file directly in src/ counts as a folder.
 */
function refuseTwoWays({ imports }: Graph): string[] {
  const examples = new Map<string, string>()
  for (const { from, to } of imports) {
    const [place, target] = [findPlace(from), findPlace(to)]
    if (place && target && place !== target) examples.set(`${place} ${target}`, `${from} → ${to}`)
  }
  return [...examples].flatMap(([arrow, example]) => {
    const [place, target] = arrow.split(' ') as [string, string]
    const back = place < target ? examples.get(`${target} ${place}`) : undefined
    return back ? [`${place} and ${target} must not import each other:\n  ${example}\n  ${back}`] : []
  })
}

/** Returns an error for every import of node:http in src/. Type imports are allowed, because they load no module. */
function refuseNodeHttp({ files }: Graph): string[] {
  return files
    .filter(path => path.startsWith('src/'))
    .filter(path => /^import (?!type )[^'"]*'node:http'/m.test(readFileSync(join(root, path), 'utf8')))
    .map(path => `${path} must not import node:http:\n  src/http/format/status.ts gives the reason.`)
}

import { globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'

/**
 * An import of one file by another. The paths are relative to the root of the project. A type-only import does not load
 * the file at run time.
 */
export type Import = { from: string; to: string; typeOnly: boolean }

export type Graph = { root: string; files: string[]; imports: Import[] }

const TREES = '{src,client,test,bench,scripts}/**/*.{ts,js,mjs}'

/**
 * Reads every import between two files of the project: static imports, dynamic imports, `export … from`, and type
 * imports.
 */
export function readGraph(root: string): Graph {
  const files = globSync(TREES, {
    cwd: root,
    exclude: ['**/node_modules', '**/dist', '**/generated', '**/work-*'],
  }).sort()
  const known = new Set(files)
  const imports = files.flatMap(from => {
    return readTargets(readFileSync(join(root, from), 'utf8'))
      .map(({ path, typeOnly }) => ({ from, to: normalize(join(dirname(from), path)), typeOnly }))
      .filter(({ to }) => known.has(to))
  })
  return { root, files, imports }
}

// `import x, { y } from './z.ts'`, `export * as x from './z.ts'`, `import './z.ts'`
const STATIC =
  /^(?:import|export)\s+(type\s+)?(?:(?:[\w$*]+(?:\s+as\s+[\w$]+)?\s*,?\s*)?(?:\{[^}]*\}\s*)?from\s*)?['"](\.[^'"]+)['"]/gm
const DYNAMIC = /\b(typeof\s+)?import\(\s*['"](\.[^'"]+)['"]/g

function readTargets(text: string): { path: string; typeOnly: boolean }[] {
  const code = text.replace(/^\s*(\*|\/\/|\/\*\*).*$/gm, '')
  return [...code.matchAll(STATIC), ...code.matchAll(DYNAMIC)].map(([, type, path]) => ({
    path: path!,
    typeOnly: type !== undefined,
  }))
}

/**
 * Finds files that import each other in a circle.
 * @returns the circles, each as a list of files. The first file of a circle appears once more at the end of the list
 */
export function findCircles({ files, imports }: Graph): string[][] {
  const targets = Map.groupBy(imports, ({ from }) => from)
  const finished = new Set<string>()
  const circles: string[][] = []

  function visit(file: string, path: string[]): void {
    if (path.includes(file)) {
      circles.push([...path.slice(path.indexOf(file)), file])
      return
    }
    if (finished.has(file)) return
    for (const { to } of targets.get(file) ?? []) visit(to, [...path, file])
    finished.add(file)
  }

  for (const file of files) visit(file, [])
  return circles
}

// What the documents name is there: files, tests by their titles, functions, scripts, rows of one another.
import assert from 'node:assert/strict'
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, test } from 'node:test'

const root = new URL('..', import.meta.url).pathname
const DOCUMENTS = globSync('{*.md,{docs,docs/decisions,client,examples}/*.md}', { cwd: root })
const FOLDERS = ['bench', 'bin', 'client', 'docs', 'examples', 'migrations', 'scripts', 'src', 'test']

const read = (path: string) => readFileSync(join(root, path), 'utf8')
const isThere = (path: string) => existsSync(join(root, path))

/** The index of the decisions and its chapters, as one text. */
function decisions(): string {
  return ['docs/decisions.md', ...globSync('docs/decisions/*.md', { cwd: root })].map(read).join('\n')
}

/** What stands between single backticks. */
const quoted = (text: string) => [...text.matchAll(/`([^`\n]+)`/g)].map(([, code]) => code!)

for (const name of DOCUMENTS) {
  describe(name, () => {
    const text = read(name)

    test('links lead to files that are there', () => {
      for (const [, path] of text.matchAll(/\]\((?!http)([^)#]+)/g)) {
        assert.ok(isThere(join(dirname(name), path!)), path)
      }
    })

    test('files that are named are there', () => {
      const paths = quoted(text).filter(code => /^[\w.-]+\/[\w./-]+$/.test(code))
      // What a build leaves there is none of the tree's.
      for (const path of paths.filter(path => FOLDERS.includes(path.split('/')[0]!) && path !== 'client/dist')) {
        assert.ok(isThere(path), path)
      }
    })

    test('tests that are named are there, under such a title', () => {
      for (const [, file, titles] of text.matchAll(/`([\w/-]+\.test)`((?:,? "[^"]+")*)/g)) {
        const path = `test/${file}.ts`
        assert.ok(isThere(path), path)
        const lines = read(path).split('\n')
        for (const [, title] of titles!.matchAll(/"([^"]+)"/g)) {
          const parts = title!.split('…').filter(part => part !== '')
          const line = lines.find(line => /['"`]/.test(line) && parts.every(part => line.includes(part)))
          assert.ok(line, `${path} has no ${title}`)
        }
      }
    })

    test('scripts that are named are there', () => {
      const manifests = { '--prefix bench ': 'bench/', '--workspace client ': 'client/', '': '' }
      for (const [, where = '', script] of text.matchAll(
        /\bnpm (--prefix bench |--workspace client )?run (?:--silent )?([\w:]+)/g,
      )) {
        const { scripts } = JSON.parse(read(`${manifests[where as '']}package.json`))
        assert.ok(script! in scripts, `npm ${where}run ${script}`)
      }
    })
  })
}

test('the decisions and SECURITY.md name tests at all', () => {
  const counts = [decisions(), read('SECURITY.md')].map(text => [...text.matchAll(/`[\w/-]+\.test`/g)].length)
  assert.ok(counts[0]! > 100 && counts[1]! > 10, counts.join(' '))
})

test('docs/architecture.md maps each folder and file of src/, and no other', () => {
  const map = /\nsrc\/\n((?: {2}.*\n)+)/.exec(read('docs/architecture.md'))![1]!
  const entries = map.split(/^ {2}(?=\w)/m).filter(entry => entry !== '')
  const mapped = new Map(entries.map(entry => [/^[\w.-]+/.exec(entry)![0], entry]))
  assert.deepEqual([...mapped.keys()].sort(), readdirSync(join(root, 'src')).sort())
  for (const path of globSync('src/*/*.ts', { cwd: root })) {
    const [, folder, file] = path.split(/[/.]/) as [string, string, string]
    // Every feature has these two; commands are a file each. Of `openapi-errors` the first word will do.
    if (file === 'routes' || file === 'schema' || folder === 'cli') continue
    assert.ok(mapped.get(folder)!.includes(file.split('-')[0]!), path)
  }
})

test('docs/states.md names functions that are there, and no module in vain', () => {
  const states = read('docs/states.md')
  const files = new Map(
    [...states.matchAll(/^\| `(\w+)` \| `([\w/.-]+)` \|$/gm)].map(([, name, path]) => [name!, path!]),
  )
  const named = [...states.matchAll(/(?:<br\/>|, |`)([\w-]+)\.(\w+)\b(?!\.)/g)].map(
    ([, module, name]) => [module!, name!] as const,
  )
  assert.ok(named.length > 40)
  for (const [module, name] of named) {
    const path = files.get(module)
    assert.ok(path, `nobody says where ${module}.${name} is`)
    assert.match(read(path), new RegExp(`function ${name}\\(|async #${name}\\(`), `${path} has no ${name}`)
  }
  assert.deepEqual(new Set(named.map(([module]) => module)), new Set(files.keys()))
})

test('docs/decisions.md leads to every chapter of the decisions, and to no other', () => {
  const linked = [...read('docs/decisions.md').matchAll(/\]\((decisions\/[^)]+)\)/g)].map(([, path]) => `docs/${path}`)
  assert.deepEqual(linked.sort(), globSync('docs/decisions/*.md', { cwd: root }).sort())
})

test('each row of the decisions has a question, a choice and a test, and no question has two rows', () => {
  const rows = globSync('docs/decisions/*.md', { cwd: root }).flatMap(path => read(path).match(/^\|.*$/gm)!)
  const cells = rows.map(row => row.slice(2, -2).split(' | '))
  for (const row of cells) if (!row[0]!.startsWith('--')) assert.equal(row.length, 3, row[0]!)
  const questions = cells.map(([question]) => question!).filter(question => !/^(--.*|open question)$/.test(question))
  assert.ok(questions.length > 200)
  assert.deepEqual(questions, [...new Set(questions)])
})

test('comments name rows of the decisions that are there', () => {
  const text = `\n${decisions()}`
  const named = globSync('{src,client/src}/**/*.ts', { cwd: root }).flatMap(path =>
    [...read(path).matchAll(/decisions\.md, "([^"]+)"/g)].map(
      ([, row]) => [path, row!.replace(/\n \* /g, ' ')] as const,
    ),
  )
  assert.ok(named.length > 3)
  for (const [path, row] of named) {
    const isThere = [`\n| ${row} |`, `\n# ${row}\n`, `\n## ${row}\n`].some(line => text.includes(line))
    assert.ok(isThere, `${path}: ${row}`)
  }
})

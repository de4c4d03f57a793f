// The documents name files, test titles, functions and so on. These tests check that everything they name exists.
import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { describe, test } from 'node:test'

const root = new URL('..', import.meta.url).pathname
const DOCUMENTS = globSync('{*.md,{docs,docs/decisions,client,examples}/*.md}', { cwd: root })
const FOLDERS = ['bench', 'bin', 'client', 'deploy', 'docs', 'examples', 'migrations', 'scripts', 'src', 'test']

const read = (path: string) => readFileSync(join(root, path), 'utf8')
const isThere = (path: string) => existsSync(join(root, path))

/** Returns docs/decisions.md and all files of docs/decisions/ as one text. */
function decisions(): string {
  return ['docs/decisions.md', ...globSync('docs/decisions/*.md', { cwd: root })].map(read).join('\n')
}

/** Returns the inline code of a Markdown text, without the backticks. */
const quoted = (text: string) => [...text.matchAll(/`([^`\n]+)`/g)].map(([, code]) => code!)

for (const name of DOCUMENTS) {
  describe(name, () => {
    const text = read(name)

    test(`every link in ${name} leads to an existing file`, () => {
      for (const [, path] of text.matchAll(/\]\((?!http)([^)#]+)/g)) {
        assert.ok(isThere(join(dirname(name), path!)), path)
      }
    })

    test(`every file that ${name} names exists`, () => {
      const paths = quoted(text).filter(code => /^[\w.-]+\/[\w./-]+$/.test(code))
      // The folder client/dist exists only after a build.
      for (const path of paths.filter(path => FOLDERS.includes(path.split('/')[0]!) && path !== 'client/dist')) {
        assert.ok(isThere(path), path)
      }
    })

    test(`every test file and every test title that ${name} names exists`, () => {
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

    test(`every npm script that ${name} names exists`, () => {
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

test('the decisions refer to tests more than 100 times, and SECURITY.md more than 10 times', () => {
  const counts = [decisions(), read('SECURITY.md')].map(text => [...text.matchAll(/`[\w/-]+\.test`/g)].length)
  assert.ok(counts[0]! > 100 && counts[1]! > 10, counts.join(' '))
})

/**
 * Returns the paths in the map of src/ in docs/architecture.md. In this map, the content of a folder is indented by two
 * more spaces than the folder, and the name of a folder ends with a slash.
 */
function readMap(): string[] {
  const map = /\nsrc\/\n((?: {2}.*\n)+)/.exec(read('docs/architecture.md'))![1]!
  const folders: string[] = []
  return [...map.matchAll(/^((?: {2})+)(\S+)/gm)].map(([, indent, name]) => {
    folders.splice(indent!.length / 2 - 1)
    const path = folders.join('') + name
    if (path.endsWith('/')) folders.push(name!)
    return path
  })
}

test('docs/architecture.md lists every folder and source file of src/, and nothing else', () => {
  const entries = globSync('**/*', { cwd: join(root, 'src'), withFileTypes: true })
  const paths = entries.map(entry => {
    const path = relative(join(root, 'src'), join(entry.parentPath, entry.name))
    return entry.isDirectory() ? `${path}/` : path
  })
  const expected = paths.filter(path => path.endsWith('/') || path.endsWith('.ts'))
  assert.deepEqual(readMap().sort(), expected.sort())
})

test('CONTRIBUTING.md gives a reason for every runtime dependency, and for no other package', () => {
  const section = read('CONTRIBUTING.md').split('## Why each runtime dependency')[1]!
  const named = [...section.matchAll(/^\| ([@\w./-]+) \| \S.* \|$/gm)].map(([, name]) => name!)
  const { dependencies } = JSON.parse(read('package.json'))
  assert.deepEqual(named.slice(1).sort(), Object.keys(dependencies).sort())
})

test('no recipe in CONTRIBUTING.md has more than eight lines', () => {
  const recipes = read('CONTRIBUTING.md').split('\n## Recipes\n')[1]!.split('\n## ')[0]!.split('\n### ').slice(1)
  assert.ok(recipes.length >= 6)
  for (const recipe of recipes) {
    const [title, ...lines] = recipe.trim().split('\n')
    assert.ok(lines.filter(line => line !== '').length <= 8, title)
  }
})

test('every function that docs/states.md names exists, and its table lists the modules of these functions', () => {
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
    assert.ok(path, `the table does not list the module of ${module}.${name}`)
    assert.match(read(path), new RegExp(`function ${name}\\(|async #${name}\\(`), `${path} has no ${name}`)
  }
  assert.deepEqual(new Set(named.map(([module]) => module)), new Set(files.keys()))
})

test('docs/operations.md lists every outcome of a delivery, and no other', () => {
  const SOURCES =
    'src/{channels,auth/send-code,outbox/worker,reach/{expand,send-digest,{push,digest}-look,push-{channel,answer,rejections}}}.ts'
  const lines = globSync(SOURCES, { cwd: root }).flatMap(path => read(path).split('\n'))
  const named = lines
    .filter(line => /\boutcome\b|\bdrop\('|type NoMail/.test(line))
    .flatMap(line => [...line.matchAll(/'([a-z]+)'/g)].map(([, word]) => word!))
    .filter(word => !['outcome', 'error', 'warn'].includes(word))
  const section = read('docs/operations.md').split('\n### Outcomes of deliveries\n')[1]!.split('\n### ')[0]!
  const listed = [...section.matchAll(/^\| `([a-z]+)` \|/gm)].map(([, outcome]) => outcome!)
  assert.ok(listed.length > 15)
  assert.deepEqual(listed.toSorted(), [...new Set(named)].sort())
})

test('docs/decisions.md links to every file in docs/decisions/ exactly once', () => {
  const linked = [...read('docs/decisions.md').matchAll(/\]\((decisions\/[^)]+)\)/g)].map(([, path]) => `docs/${path}`)
  assert.deepEqual(linked.sort(), globSync('docs/decisions/*.md', { cwd: root }).sort())
})

test('each row of the decisions has three cells, and each question has only one row', () => {
  const rows = globSync('docs/decisions/*.md', { cwd: root }).flatMap(path => read(path).match(/^\|.*$/gm)!)
  const cells = rows.map(row => row.slice(2, -2).split(' | '))
  for (const row of cells) if (!row[0]!.startsWith('--')) assert.equal(row.length, 3, row[0]!)
  const questions = cells.map(([question]) => question!).filter(question => !/^(--.*|open question)$/.test(question))
  assert.ok(questions.length > 200)
  assert.deepEqual(questions, [...new Set(questions)])
})

test('if a comment names a row of the decisions, this row exists', () => {
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

test('no line of a comment is longer than 120 characters', () => {
  // The formatter breaks lines of code, but not comments.
  const files = globSync('{src,client/src,test,bench,scripts}/**/*.ts', {
    cwd: root,
    exclude: ['**/node_modules', 'bench/generated', 'client/src/api.ts'],
  })
  assert.ok(files.length > 500)
  for (const file of files) {
    for (const [index, line] of read(file).split('\n').entries()) {
      const isComment = /^\s*(\/\/|\/?\*)/.test(line)
      assert.ok(!isComment || line.length <= 120 || line.includes('http'), `${file}:${index + 1}`)
    }
  }
})

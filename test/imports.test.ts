import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, test } from 'node:test'

const SCRIPT = new URL('../scripts/imports.ts', import.meta.url).pathname

type Tree = Record<string, string>

/** Runs `scripts/imports.ts` on a temporary project. @param tree maps the path of each file to its content */
function check(tree: Tree): { status: number | null; output: string } {
  const root = mkdtempSync(join(tmpdir(), 'courtside-imports-'))
  try {
    for (const [path, text] of Object.entries(tree)) {
      mkdirSync(join(root, dirname(path)), { recursive: true })
      writeFileSync(join(root, path), text)
    }
    const { status, stdout, stderr } = spawnSync(process.execPath, [SCRIPT, root], { encoding: 'utf8' })
    return { status, output: stdout + stderr }
  } finally {
    rmSync(root, { recursive: true })
  }
}

/** Returns a tree with two files. The file `from` imports the file `to`. */
function oneImport(from: string, to: string, statement = (path: string) => `import '${path}'`): Tree {
  const path = `${'../'.repeat(from.split('/').length - 1) || './'}${to}`
  return { [from]: `${statement(path)}\n`, [to]: 'export const x = 1\n' }
}

describe('npm run imports', () => {
  test('npm run imports accepts imports of lower levels and prints the number of files and imports', () => {
    const { status, output } = check({
      'src/main.ts': "import { serve } from './cli/serve.ts'\nserve()\n",
      'src/cli/serve.ts': "import { x } from '../games/games.ts'\nexport const serve = () => x\n",
      'src/games/games.ts': "import type { User } from '../accounts/users.ts'\nexport const x = 1 as unknown as User\n",
      'src/accounts/users.ts': "export * from '../db/sql.ts'\nexport type User = 1\n",
      'src/db/sql.ts': 'export const sql = 1\n',
      'client/src/index.ts': "export { a } from './a.ts'\n",
      'client/src/a.ts': 'export const a = 1\n',
    })
    assert.equal(status, 0, output)
    assert.match(output, /^7 files, 5 imports in client, src, including type imports: all imports are allowed/)
  })

  const refused: [title: string, tree: Tree, reason: RegExp][] = [
    ['an import of a higher level', oneImport('src/http/route.ts', 'src/auth/sessions.ts'), /imports go down/],
    [
      'a type import of a higher level',
      oneImport('src/db/sql.ts', 'src/games/games.ts', path => `import type { x } from '${path}'`),
      /imports go down/,
    ],
    [
      'an import of a higher level over several lines',
      oneImport('src/db/sql.ts', 'src/app.ts', path => `import {\n  x,\n} from '${path}'`),
      /imports go down/,
    ],
    [
      'a dynamic import of a higher level',
      oneImport('src/games/games.ts', 'src/cli/serve.ts', path => `export const x = () => import('${path}')`),
      /imports go down/,
    ],
    [
      'a re-export of a higher level',
      oneImport('src/auth/jwt.ts', 'src/service.ts', path => `export * as y from '${path}'`),
      /imports go down/,
    ],
    ['an import of a folder without a level', oneImport('src/app.ts', 'src/helpers/x.ts'), /must have a level/],
    [
      'an import of another feature that no rule allows',
      oneImport('src/accounts/users.ts', 'src/auth/jwt.ts'),
      /these may import accounts/,
    ],
    [
      'an import of the context type by a module below the routes',
      oneImport('src/auth/sessions.ts', 'src/context.ts', path => `import type { x } from '${path}'`),
      /may import the type of the context/,
    ],
    [
      'an import of the context as a value',
      oneImport('src/auth/routes.ts', 'src/context.ts'),
      /may import the type of the context/,
    ],
    ['an import of the settings by a feature', oneImport('src/games/due.ts', 'src/settings.ts'), /as arguments/],
    [
      'an import of the metrics by a feature',
      oneImport('src/auth/routes.ts', 'src/metrics/metrics.ts'),
      /plain functions/,
    ],
    [
      'an import of src/mail/smtp.ts by a module other than the context',
      oneImport('src/service.ts', 'src/mail/smtp.ts'),
      /only the context/,
    ],
    [
      'an import of a mail provider whose name starts with "mail" by a module other than the context',
      oneImport('src/service.ts', 'src/mail/mailgun.ts'),
      /only the context/,
    ],
    [
      'an import of the embedded server by src/service.ts',
      oneImport('src/service.ts', 'src/embedded/server.ts'),
      /DATABASE_URL/,
    ],
    [
      'an import of src/http/route.ts by a file of src/http/format/',
      oneImport('src/http/format/json.ts', 'src/http/route.ts'),
      /a format must not depend/,
    ],
    [
      'an import of the client by the service',
      oneImport('src/app.ts', 'client/src/index.ts'),
      /must not depend on code outside src/,
    ],
    [
      'an import of a test by the service',
      oneImport('src/app.ts', 'test/support/app.ts'),
      /must not depend on code outside src/,
    ],
    [
      'an import of the service by the client',
      oneImport('client/src/index.ts', 'src/errors.ts'),
      /without dependencies/,
    ],
    [
      'an import of a test by a script',
      oneImport('scripts/test.ts', 'test/support/app.ts'),
      /must not depend on the code of the tests/,
    ],
    ['an import of the bench by a test', oneImport('test/a.test.ts', 'bench/load.ts'), /its own package\.json/],
    [
      'a circle of type imports',
      {
        'client/src/a.ts': "import type { B } from './b.ts'\nexport type A = B\n",
        'client/src/b.ts': "import type { C } from './c.ts'\nexport type B = C\n",
        'client/src/c.ts': "import type { A } from './a.ts'\nexport type C = A\n",
      },
      /client\/src\/a\.ts\n {2}→ client\/src\/b\.ts\n {2}→ client\/src\/c\.ts\n {2}→ client\/src\/a\.ts\n {2}is a circle/,
    ],
    [
      'two folders that import each other, although no two files import each other',
      {
        ...oneImport('src/http/server.ts', 'src/metrics/metrics.ts'),
        ...oneImport('src/metrics/routes.ts', 'src/http/route.ts'),
      },
      /http and metrics must not import each other/,
    ],
    [
      'an import of node:http by the service',
      { 'src/app.ts': "import { get } from 'node:http'\n" },
      /must not import node:http/,
    ],
  ]
  for (const [title, tree, reason] of refused) {
    test(`npm run imports refuses ${title}`, () => {
      const { status, output } = check(tree)
      assert.equal(status, 1, output)
      assert.match(output, reason)
    })
  }

  test('npm run imports allows cli/emit.ts to import client/src/batches.ts', () => {
    assert.equal(check(oneImport('src/cli/emit.ts', 'client/src/batches.ts')).status, 0)
  })

  test('npm run imports ignores imports in comments', () => {
    const tree = oneImport(
      'src/db/sql.ts',
      'src/app.ts',
      path => `// import('${path}')\n/**\n * import('${path}')\n */`,
    )
    assert.equal(check(tree).status, 0)
  })
})

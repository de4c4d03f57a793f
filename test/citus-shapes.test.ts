import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { describe, test } from 'node:test'

/**
 * The shapes that Citus refuses, or runs differently, in a statement on a table that is distributed by `user_id`. Citus
 * 13.2.2 refused each example. `npm run test:citus` runs all statements on Citus.
 */
const SHAPES: { reason: string; shape: RegExp; example: string }[] = [
  {
    reason: 'a NOTIFY in the statement: Citus refuses it, or a worker sends it, and no process listens there',
    shape: /pg_notify/,
    example: 'update notification set read_at = $1 where user_id = $2 returning id, pg_notify($3, $4)',
  },
  {
    reason: 'a lock on rows of several users',
    shape:
      /from notification where (?!user_id = \$\S+ (?:and|order))(?:(?!from notification)[^;])*? for (?:update|share|no key update)/,
    example: 'select id from notification where user_id = $1 or actor_id = $1 order by id for update',
  },
  {
    reason: 'a select without columns: write `exists (select 1 …)`',
    shape: /\( ?select from/,
    example: 'select exists (select from notification where id = $1) as found',
  },
  {
    reason: 'a lateral join',
    shape: /\blateral\b/,
    example: 'select 1 from unnest($1) as reader (user_id) cross join lateral (select id from notification) as one',
  },
  {
    reason: 'a subquery without FROM that uses columns of the table',
    shape: /from \(select (?:(?! from )[^()])+\) as/,
    example: 'select (select row_to_json(wire) from (select id, title) as wire) from notification where user_id = $1',
  },
  {
    reason: 'a function whose result can change, in a statement that writes: pass the value as a parameter',
    shape:
      /\b(?:insert into|update|delete from) notification\b.*\b(?:now\(\)|clock_timestamp|current_timestamp|random\(|gen_random_uuid)/,
    example: 'update notification set read_at = now() where user_id = $1',
  },
]

/** Returns the templates of statements and fragments in the source code that read or write the table. */
function findStatements(): { path: string; text: string }[] {
  return globSync('src/**/*.ts', { cwd: new URL('..', import.meta.url).pathname }).flatMap(path => {
    const source = readFileSync(new URL(`../${path}`, import.meta.url), 'utf8')
    const starts = [...source.matchAll(/\b(?:sql|tx|readSql|fragment)(?:<[^`]*?>)?`/g)]
    return starts
      .map(match => normalize(readTemplate(source, match.index + match[0].length)))
      .filter(text => /\b(?:from|join|into|update|using) notification\b/.test(text))
      .map(text => ({ path, text }))
  })
}

/** Returns the text of a template literal from `start` to its closing backtick. Templates may be nested. */
function readTemplate(source: string, start: number): string {
  let depth = 0
  for (let index = start; index < source.length; index += 1) {
    if (source.startsWith('${', index)) depth += 1
    else if (source[index] === '}' && depth > 0) depth -= 1
    else if (source[index] === '`' && depth === 0) return source.slice(start, index)
  }
  throw new Error('a template without an end')
}

function normalize(text: string): string {
  return text.replaceAll(/--.*/g, '').replaceAll(/\s+/g, ' ').trim()
}

describe('the statements on the table notification', () => {
  const statements = findStatements()

  test('the search finds the statements of every kind', () => {
    for (const kind of ['insert into', 'update', 'delete from', 'select']) {
      assert.ok(
        statements.some(({ text }) => text.includes(kind)),
        kind,
      )
    }
    assert.ok(statements.length >= 12, `${statements.length} statements`)
  })

  for (const { reason, shape, example } of SHAPES) {
    test(`no statement has ${reason}`, () => {
      assert.match(example, shape)
      for (const { path, text } of statements) assert.doesNotMatch(text, shape, path)
    })
  }
})

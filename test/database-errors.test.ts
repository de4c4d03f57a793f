import assert from 'node:assert/strict'
import { test } from 'node:test'
import pg from 'pg'
import { isUnreachable } from '../src/db/errors.ts'
import { settingsFor } from './support/app.ts'
import { collectLines, run } from './support/service.ts'
import { waitUntil } from './support/wait-until.ts'

test('an error of a Citus worker that was lost counts as unreachable, and other internal errors do not', () => {
  const make = (code: string, routine: string) =>
    Object.assign(new pg.DatabaseError('x', 1, 'error'), { code, routine })
  assert.equal(isUnreachable(make('XX000', 'MarkRemoteTransactionFailed')), true)
  assert.equal(isUnreachable(make('XX000', 'elog_finish')), false)
  assert.equal(isUnreachable(make('57P01', 'ProcessInterrupts')), true)
})

test('while a starting process cannot reach its database, it logs the reason', async t => {
  const url = 'postgres://u@127.0.0.1:1/none?sslmode=verify-full&sslrootcert=/missing.crt'
  const service = run(['serve'], { PORT: '0', ...settingsFor(url) })
  t.after(() => service.kill('SIGKILL'))
  const lines = collectLines(service)
  await waitUntil(() => lines.some(line => line.includes('the database is not ready yet')))
  assert.match(lines.join('\n'), /"reason":"ENOENT: no such file or directory, open '\/missing.crt'"/)
})

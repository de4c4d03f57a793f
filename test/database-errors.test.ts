import assert from 'node:assert/strict'
import { test } from 'node:test'
import pg from 'pg'
import { isUnreachable } from '../src/db/errors.ts'

test('an error of a Citus worker that was lost counts as unreachable, and other internal errors do not', () => {
  const make = (code: string, routine: string) =>
    Object.assign(new pg.DatabaseError('x', 1, 'error'), { code, routine })
  assert.equal(isUnreachable(make('XX000', 'MarkRemoteTransactionFailed')), true)
  assert.equal(isUnreachable(make('XX000', 'elog_finish')), false)
  assert.equal(isUnreachable(make('57P01', 'ProcessInterrupts')), true)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import pg from 'pg'
import { pino } from 'pino'
import { logOptions } from '../src/log.ts'

const lines: Record<string, any>[] = []
const log = pino(logOptions('trace'), { write: (line: string) => lines.push(JSON.parse(line)) })

test('an error is logged with its class, code, schema names and stack, but without its message', () => {
  const fault = Object.assign(new pg.DatabaseError('duplicate zq\n    at zq', 1, 'error'), {
    code: '23505',
    detail: 'Key (email)=(zq) already exists.',
    where: 'zq',
    hint: 'zq',
    internalQuery: 'zq',
    parameters: ['zq'],
    table: 'app_user',
    constraint: 'app_user_email_key',
  })
  const outer = new TypeError('zq is no thing', { cause: fault })
  for (const write of [
    () => log.error({ err: outer }, 'request failed'),
    () => log.error({ err: outer }),
    () => log.error(outer),
    () => log.child({ reqId: '1' }).error(outer),
  ]) {
    lines.length = 0
    write()
    assert.doesNotMatch(JSON.stringify(lines), /zq/)
    const { reason, at, cause } = lines[0]!.err
    assert.equal(reason, 'TypeError')
    assert.match(at[0], /log-errors\.test\.ts/)
    assert.deepEqual([cause.reason, cause.table, cause.constraint], ['error 23505', 'app_user', 'app_user_email_key'])
  }
})

test('a thrown value that is not an error is logged without its content', () => {
  const values = ['zq', undefined, null, 7, { zq: 1 }]
  lines.length = 0
  for (const thrown of values) log.error({ err: thrown }, 'request failed')
  assert.equal(lines.length, values.length)
  assert.doesNotMatch(JSON.stringify(lines), /zq/)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { harness } from './support/app.ts'
import { signUp } from './support/scenario.ts'

// A hint to the workers would open another connection.
const h = harness({}, { hints: { sendAfter: write => write(new Set()), close: async () => {} } })

// PostgreSQL makes a generic plan for the content that the tables have at that moment, and keeps the plan when the
// tables grow. In this test the tables are empty at first. For an empty table, PostgreSQL could choose a plan that
// scans the whole table.
test('from the first sign-up on, the statements of a sign-up and of a known client use indexes and have only generic plans', async () => {
  // The test reads the codes with its own connection. These reads must not scan a table either, because PostgreSQL
  // counts the scans of all connections together.
  await h.database.sql`set enable_seqscan = off`
  for (let count = 0; count < 10; count += 1) {
    const { email, token } = await signUp(h)
    // The request of a known client counts the waiting mails of its network.
    assert.equal((await h.call('POST', '/api/v1/auth/request-otp', { body: { email }, token })).status, 200)
  }
  // The requests were sent one after the other, so they all used the same connection.
  assert.equal(h.ctx.sql.pipeline.stats().total, 1)
  assert.equal(h.database.sql.pipeline.stats().total, 1)
  // A connection reports its scans at most once a second, unless it is forced to.
  await h.database.sql`select pg_stat_force_next_flush()`
  const [plans] = await h.ctx.sql<{ generic: number; custom: number }>`
    select sum(generic_plans) as generic, sum(custom_plans) as custom, pg_stat_force_next_flush()
    from pg_prepared_statements`
  assert.ok(Number(plans!.generic) >= 30)
  assert.equal(Number(plans!.custom), 0)
  const read = await h.ctx.sql`
    select relname from pg_stat_user_tables
    where relname in ('sign_in_address', 'sign_in_code', 'sign_in_network', 'missed_guess', 'app_user', 'session', 'outbox') and seq_scan > 0`
  assert.deepEqual(read, [])
})

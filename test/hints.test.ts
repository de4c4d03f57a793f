import assert from 'node:assert/strict'
import { mock, type TestContext, test } from 'node:test'
import { OUTBOX_CHANNEL } from '../src/db/hints.ts'
import { channelName } from '../src/db/own-schema.ts'
import { DEFAULT_SCHEMA } from '../src/db/postgres-url.ts'
import { harness } from './support/app.ts'
import { newEmail, profile } from './support/scenario.ts'
import { waitUntil } from './support/wait-until.ts'

const h = harness()

/** Listens on a separate connection. @returns the connection, and the number of hints so far */
async function listenForHints(t: TestContext) {
  const client = await h.database.sql.pool.connect()
  t.after(() => client.release(true))
  await client.query(`listen "${channelName(DEFAULT_SCHEMA, OUTBOX_CHANNEL)}"`)
  const received = { hints: 0 }
  client.on('notification', () => {
    received.hints += 1
  })
  return { client, received }
}

const requestCode = (body: unknown) => h.call('POST', '/api/v1/auth/request-otp', { body })

test('no statement of a request for a code notifies in its transaction, and a hint follows the commit', async t => {
  const { received } = await listenForHints(t)
  const sent = mock.method(h.ctx.sql.pipeline, 'query').mock
  // The second request is for an unknown address, so it stores a decoy.
  for (const body of [profile(newEmail()), { email: newEmail() }]) {
    const before = received.hints
    assert.equal((await requestCode(body)).status, 200)
    await waitUntil(() => received.hints > before)
  }
  const texts = sent.calls.map(call => call.arguments[0]!.text)
  sent.restore()
  assert.ok(texts.some(text => text.includes('insert into outbox')))
  for (const text of texts.filter(text => text.includes('pg_notify'))) assert.match(text, /^select set_config/)
})

test('fifty requests for a code at once send fewer than fifty hints', async t => {
  const { client, received } = await listenForHints(t)
  await Promise.all(Array.from({ length: 50 }, () => requestCode(profile(newEmail()))))
  await waitUntil(() => received.hints > 0)
  // The last hint arrives before the reply to a statement that is sent after it.
  await h.ctx.sql`select 1`
  await client.query('select 1')
  assert.ok(received.hints < 50, `${received.hints}`)
})

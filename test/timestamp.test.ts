import assert from 'node:assert/strict'
import { test } from 'node:test'
import { connect, connectReads } from '../src/db/sql.ts'
import { readInboxChanges } from '../src/notifications/inbox-changes.ts'
import * as notifications from '../src/notifications/notifications.ts'
import { harness } from './support/app.ts'
import { makeNotifications, makeUser } from './support/factories.ts'

const h = harness()

test('times that PostgreSQL writes as JSON are in UTC with whole seconds, whatever time zone the server or URL sets', async () => {
  const user = await makeUser(h)
  const { url, sql } = h.database
  await sql`do $$ begin execute format('alter database %I set timezone = %L', current_database(), 'Asia/Kathmandu'); end $$`
  for (const options of ['', '?options=-c%20TimeZone%3DAmerica%2FSt_Johns']) {
    const [id] = await makeNotifications(h, user.id, 1)
    await sql`update notification set created_at = '2024-02-29T23:59:59.999999Z' where id = ${id}`
    const reads = connectReads(url + options)
    const writes = connect(url + options)
    try {
      const now = new Date('2026-07-01T00:00:59.999Z')
      const unread = { created_at: '2024-02-29T23:59:59+00:00', read_at: null, is_read: false }
      const read = { ...unread, read_at: '2026-07-01T00:00:59+00:00', is_read: true }
      const page = async () => JSON.parse((await notifications.list(reads, user.id, { page: 1, perPage: 1 })).json)
      const changes = async () =>
        (await readInboxChanges(reads, [{ userId: user.id, floor: id! - 1, sentIds: [] }])).get(user.id)!.fresh
      const pickInstants = ({ created_at, read_at, is_read }: Record<string, unknown>) => ({
        created_at,
        read_at,
        is_read,
      })

      assert.deepEqual((await page()).map(pickInstants), [unread])
      for (const twice of [1, 2]) {
        const marked = await notifications.markRead(writes, user.id, id!, now)
        assert.deepEqual(pickInstants(JSON.parse(marked!)), read, `${twice}`)
      }
      assert.deepEqual((await page()).map(pickInstants), [read])
      assert.deepEqual(
        (await changes()).map(({ json }) => pickInstants(JSON.parse(json))),
        [read],
      )
    } finally {
      await Promise.all([reads.close(), writes.close()])
    }
  }
})

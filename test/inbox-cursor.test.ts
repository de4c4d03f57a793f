import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readInbox, readInboxChanges } from '../src/notifications/inbox-changes.ts'
import { InboxCursor, MAX_COMMIT_DELAY_MS } from '../src/notifications/inbox-cursor.ts'
import { harness } from './support/app.ts'
import { makeNotifications, makeUser } from './support/factories.ts'

const h = harness()

const state = (floor: number, sentIds: number[]) => ({ unreadCount: 0, latestId: null, floor, sentIds })

test('the floor rises to the highest id that was sent more than five minutes ago, and the cursor then drops the ids up to the floor', () => {
  const cursor = new InboxCursor(1, state(10, [14, 12]), 0)
  cursor.markSent([11, 15], 1_000)
  cursor.raiseFloor(MAX_COMMIT_DELAY_MS)
  assert.deepEqual([cursor.floor, ...cursor.sentIds], [10, 14, 12, 11, 15])
  cursor.raiseFloor(MAX_COMMIT_DELAY_MS + 1)
  assert.deepEqual([cursor.floor, ...cursor.sentIds], [14, 15])
  cursor.raiseFloor(MAX_COMMIT_DELAY_MS + 1_001)
  assert.deepEqual([cursor.floor, ...cursor.sentIds], [15])
})

test('the floor of a first sync is the highest id that is older than five minutes, and all later ids count as sent', async () => {
  const user = await makeUser(h)
  const olderThan = () => new Date(h.clock.now().getTime() - MAX_COMMIT_DELAY_MS)
  assert.deepEqual(await readInbox(h.ctx.readSql, user.id, olderThan()), state(0, []))
  const old = await makeNotifications(h, user.id, 2)
  assert.equal((await readInbox(h.ctx.readSql, user.id, olderThan())).floor, 0)
  h.clock.advance(MAX_COMMIT_DELAY_MS + 1)
  const young = await makeNotifications(h, user.id, 2)
  const { floor, sentIds, latestId, unreadCount } = await readInbox(h.ctx.readSql, user.id, olderThan())
  assert.deepEqual([floor, sentIds.sort(), latestId, unreadCount], [old[1], young, young[1], 4])
})

test('one statement reads the unread counts of several inboxes, and their rows above the floors that were not sent', async () => {
  const [first, second, empty] = [await makeUser(h), await makeUser(h), await makeUser(h)]
  const ofFirst = await makeNotifications(h, first.id, 4)
  const ofSecond = await makeNotifications(h, second.id, 2)
  const changes = await readInboxChanges(h.ctx.readSql, [
    { userId: first.id, floor: ofFirst[0]!, sentIds: [ofFirst[2]!] },
    { userId: second.id, floor: 0, sentIds: [] },
    { userId: empty.id, floor: 0, sentIds: [] },
  ])
  const idsOf = (userId: number) => changes.get(userId)!.fresh.map(({ id }) => id)
  assert.deepEqual(idsOf(first.id), [ofFirst[1], ofFirst[3]])
  assert.deepEqual(idsOf(second.id), ofSecond)
  assert.deepEqual(changes.get(empty.id), { unreadCount: 0, fresh: [] })
  assert.deepEqual([changes.get(first.id)!.unreadCount, changes.get(second.id)!.unreadCount], [4, 2])
})

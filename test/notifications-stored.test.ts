import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type NewNotification, store } from '../src/notifications/store.ts'
import { eraseUser } from '../src/personal-data.ts'
import { harness } from './support/app.ts'
import { makeNotifications, makeUser } from './support/factories.ts'

const h = harness()

function notification(userId: number, more: Partial<NewNotification> = {}): NewNotification {
  return {
    userId,
    dedupKey: 'game_full:x',
    type: 'game_full',
    title: 'Partie complète',
    message: 'Vous êtes 4 sur 4.',
    data: { game_id: 1 },
    locale: 'fr',
    actorId: null,
    actorName: null,
    ...more,
  }
}

const storeAll = async (notifications: NewNotification[]) =>
  (await store(h.database.sql, notifications, h.clock.now())).length

async function readMessages(userId: number): Promise<string[]> {
  const rows = await h.database.sql`select message from notification where user_id = ${userId} order by id`
  return rows.map(row => row.message as string)
}

describe('storing notifications', () => {
  test('a user gets one notification for each deduplication key, even if one call or two calls repeat the key', async () => {
    const [user, other] = [await makeUser(h), await makeUser(h)]
    assert.equal(await storeAll([notification(user.id), notification(user.id), notification(other.id)]), 2)
    assert.equal(await storeAll([notification(user.id), notification(user.id, { dedupKey: 'game_full:y' })]), 1)
  })

  test('a call with notifications for unknown users stores only the notifications for known users', async () => {
    const user = await makeUser(h)
    assert.equal(
      await storeAll([notification(999_999), notification(user.id), notification(Number.MAX_SAFE_INTEGER)]),
      1,
    )
    assert.equal(await storeAll([]), 0)
  })

  test('if one call stores 400 notifications, their ids ascend in the given order', async () => {
    const users = [await makeUser(h), await makeUser(h), await makeUser(h), await makeUser(h)]
    const rows = Array.from({ length: 400 }, (_, index) =>
      notification(users[index % 4]!.id, { dedupKey: `f${index}`, message: `${index}` }),
    )
    assert.equal(await storeAll(rows), 400)
    const stored = await h.database.sql`
      select message from notification where user_id = any(${users.map(user => user.id)}::bigint[]) order by id`
    assert.deepEqual(
      stored.map(row => row.message),
      rows.map(row => row.message),
    )
  })

  test('messages with the special characters of PostgreSQL arrays are stored unchanged', async () => {
    const user = await makeUser(h)
    const messages = ['NULL', '', '{a,"b"}', 'back\\slash "quoted"', "it's", '🎾 é', 'two\nlines']
    await storeAll(messages.map((message, index) => notification(user.id, { message, dedupKey: `f${index}` })))
    assert.deepEqual(await readMessages(user.id), messages)
  })
})

describe('deleting the account of an actor', () => {
  const names = ['Marie', 'Zoé', 'e\u0301toile', 'Ngu\u0302\u0303yen', '👩‍👩‍👧 Élo', '𝒜da', "O'Brien$&", '%s \\1']
  for (const firstName of names) {
    test(`the deletion of the actor ${firstName} replaces the actor’s name in French and English messages`, async () => {
      const reader = await makeUser(h)
      const actor = await makeUser(h, { firstName })
      for (const locale of ['fr', 'en'] as const) {
        await makeNotifications(h, reader.id, 1, {
          message: `${firstName} a rejoint la partie avec ${firstName}.`,
          locale,
          actorId: actor.id,
          actorName: { start: 0, length: [...firstName].length },
        })
      }
      assert.equal(await eraseUser(h.database.sql, actor.id), true)
      assert.deepEqual(await readMessages(reader.id), [
        `Un joueur a rejoint la partie avec ${firstName}.`,
        `A player a rejoint la partie avec ${firstName}.`,
      ])
    })
  }

  test('the deletion of an actor does not change messages that do not name this actor', async () => {
    const [reader, actor, other] = [await makeUser(h), await makeUser(h), await makeUser(h)]
    await storeAll([
      notification(reader.id, { dedupKey: 'a', message: 'Le score est définitif.', actorId: actor.id }),
      notification(reader.id, {
        dedupKey: 'b',
        message: 'Marie a quitté la partie.',
        actorId: other.id,
        actorName: { start: 0, length: 5 },
      }),
    ])
    await eraseUser(h.database.sql, actor.id)
    assert.deepEqual(await readMessages(reader.id), ['Le score est définitif.', 'Marie a quitté la partie.'])
  })

  test('the deletion of a user deletes the user’s notifications, and a second deletion returns false', async () => {
    const user = await makeUser(h)
    await makeNotifications(h, user.id, 3)
    assert.equal(await eraseUser(h.database.sql, user.id), true)
    assert.deepEqual(await readMessages(user.id), [])
    assert.equal(await eraseUser(h.database.sql, user.id), false)
  })
})

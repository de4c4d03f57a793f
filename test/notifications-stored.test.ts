import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type NewNotification, store } from '../src/notifications/store.ts'
import { eraseUser } from '../src/personal-data.ts'
import { harness } from './support/app.ts'
import { makeNotifications, makeUser } from './support/factories.ts'

const h = harness()

function told(userId: number, more: Partial<NewNotification> = {}): NewNotification {
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

const send = (notifications: NewNotification[]) => store(h.database.sql, notifications, h.clock.now())

async function messagesOf(userId: number): Promise<string[]> {
  const rows = await h.database.sql`select message from notification where user_id = ${userId} order by id`
  return rows.map(row => row.message as string)
}

describe('deliver', () => {
  test('one row a person and fact, in one call and in the next', async () => {
    const [user, other] = [await makeUser(h), await makeUser(h)]
    assert.equal(await send([told(user.id), told(user.id), told(other.id)]), 2)
    assert.equal(await send([told(user.id), told(user.id, { dedupKey: 'game_full:y' })]), 1)
  })

  test('users that do not exist are skipped, the others are not', async () => {
    const user = await makeUser(h)
    assert.equal(await send([told(999_999), told(user.id), told(Number.MAX_SAFE_INTEGER)]), 1)
    assert.equal(await send([]), 0)
  })

  test('four hundred at once, their ids in the order given', async () => {
    const users = [await makeUser(h), await makeUser(h), await makeUser(h), await makeUser(h)]
    const rows = Array.from({ length: 400 }, (_, index) =>
      told(users[index % 4]!.id, { dedupKey: `f${index}`, message: `${index}` }),
    )
    assert.equal(await send(rows), 400)
    const stored = await h.database.sql`
      select message from notification where user_id = any(${users.map(user => user.id)}::bigint[]) order by id`
    assert.deepEqual(
      stored.map(row => row.message),
      rows.map(row => row.message),
    )
  })

  test('texts that look like an array’s own signs stay themselves', async () => {
    const user = await makeUser(h)
    const messages = ['NULL', '', '{a,"b"}', 'back\\slash "quoted"', "it's", '🎾 é', 'two\nlines']
    await send(messages.map((message, index) => told(user.id, { message, dedupKey: `f${index}` })))
    assert.deepEqual(await messagesOf(user.id), messages)
  })
})

describe('deleting the one who acted', () => {
  const names = ['Marie', 'Zoé', 'e\u0301toile', 'Ngu\u0302\u0303yen', '👩‍👩‍👧 Élo', '𝒜da', "O'Brien$&", '%s \\1']
  for (const firstName of names) {
    test(`takes the name ${firstName} out of others’ messages, in each one’s language`, async () => {
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
      assert.deepEqual(await messagesOf(reader.id), [
        `Un joueur a rejoint la partie avec ${firstName}.`,
        `A player a rejoint la partie avec ${firstName}.`,
      ])
    })
  }

  test('leaves messages alone that don’t name them, and those of others who act', async () => {
    const [reader, actor, other] = [await makeUser(h), await makeUser(h), await makeUser(h)]
    await send([
      told(reader.id, { dedupKey: 'a', message: 'Le score est définitif.', actorId: actor.id }),
      told(reader.id, {
        dedupKey: 'b',
        message: 'Marie a quitté la partie.',
        actorId: other.id,
        actorName: { start: 0, length: 5 },
      }),
    ])
    await eraseUser(h.database.sql, actor.id)
    assert.deepEqual(await messagesOf(reader.id), ['Le score est définitif.', 'Marie a quitté la partie.'])
  })

  test('takes their own notifications away; a second time there is nobody to delete', async () => {
    const user = await makeUser(h)
    await makeNotifications(h, user.id, 3)
    assert.equal(await eraseUser(h.database.sql, user.id), true)
    assert.deepEqual(await messagesOf(user.id), [])
    assert.equal(await eraseUser(h.database.sql, user.id), false)
  })
})

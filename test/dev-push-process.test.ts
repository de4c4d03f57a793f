// The development push service in real processes.
import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { deriveKeys } from '../src/keys.ts'
import { type Harness, INTAKE_KEY, JWT_SECRET, settingsFor, VAPID_KEY } from './support/app.ts'
import { type TestDatabase, testDatabase } from './support/database.ts'
import { makeUser } from './support/factories.ts'
import { cloudEvent } from './support/games.ts'
import { startService } from './support/service.ts'
import { waitUntil } from './support/wait-until.ts'

describe('a service in development', { timeout: 120_000 }, () => {
  let database: TestDatabase
  before(async () => {
    database = await testDatabase()
  })
  after(() => database.drop())

  test('sends the notifications of an event to its own push service, with links to itself', async t => {
    const service = await startService({ ...settingsFor(database.url), VAPID_PRIVATE_KEY: VAPID_KEY })
    t.after(() => service.stop())
    const ctx = { now: () => new Date(), keys: deriveKeys([JWT_SECRET]), config: { sessionDays: 7 } }
    const { id, token } = await makeUser({ ctx, database } as unknown as Harness)
    const url = (path: string) => service.listening.mailbox!.replace('/dev/mailbox', path)
    const made = await (await fetch(url('/dev/push/subscriptions'), { method: 'POST' })).json()
    const send = (method: string, path: string, bearer: string, body: unknown) =>
      fetch(`${service.address}${path}`, {
        method,
        headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
    assert.equal((await send('PUT', '/api/v1/push/subscriptions', token, made)).status, 200)
    const startsAt = new Date(Date.now() + 3_600_000).toISOString()
    const game = { game_id: 7, creator_id: id, player_ids: [id], starts_at: startsAt }
    for (const type of ['game_created', 'game_cancelled']) {
      const event = cloudEvent(type, game, { time: new Date().toISOString() })
      const answer = await send('POST', '/internal/v1/events', INTAKE_KEY, event)
      assert.equal(answer.status, 202, await answer.text())
    }
    let messages: any[] = []
    await waitUntil(async () => {
      messages = (await (await fetch(url('/dev/push/messages.json'))).json()) as any[]
      return messages.length > 0
    })
    const [{ message, urgency }] = messages
    assert.deepEqual(
      [messages.length, urgency, message.notification.tag, message.notification.navigate, message.app_badge],
      [1, 'high', 'game-7-urgent', service.address, 1],
    )
  })
})

describe('a service without settings', { timeout: 120_000 }, () => {
  let folder: string
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'courtside-push-'))
  })
  after(() => rm(folder, { recursive: true, force: true }))

  test('makes its key for pushes, and keeps it in DATA_DIR over a restart', async () => {
    const read = async () => {
      const service = await startService({ DATA_DIR: folder })
      try {
        return (await (await fetch(`${service.address}/api/v1/push/key`)).json()) as { data: { public_key: string } }
      } finally {
        await service.stop()
      }
    }
    const first = await read()
    assert.match(first.data.public_key, /^B[\w-]{86}$/)
    const path = join(folder, 'vapid-key')
    assert.equal((await stat(path)).mode & 0o777, 0o600)
    assert.equal(Buffer.from((await readFile(path, 'utf8')).trim(), 'base64url').length, 32)
    assert.deepEqual(await read(), first)
  })
})

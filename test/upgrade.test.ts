import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, describe, test } from 'node:test'
import type { migrate } from '../src/db/migrate.ts'
import { INTAKE_KEY, settingsFor } from './support/app.ts'
import { testDatabase, waitsForLock } from './support/database.ts'
import { openStream } from './support/event-stream.ts'
import { countAnnouncements, makePlayers, post, signUpByMail, startLoad } from './support/load.ts'
import { copyProgram, type Service, startService } from './support/service.ts'
import { smtpServer } from './support/smtp.ts'
import { waitUntil } from './support/wait-until.ts'

// The file name of a migration that belongs to the next version. The migration obeys two rules of CONTRIBUTING.md.
// After a migration, the statements of the previous version must work. A migration must lock tables in the same order
// as these statements do.
const NEXT = '9999_next.sql'
const MIGRATION = `
  alter table app_user add column next text not null default '';
  alter table notification add column next text;
  create index app_user_next on app_user (next);`

describe('an upgrade', () => {
  let folder: string

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'courtside-next-'))
    await copyProgram(folder)
  })
  after(() => rm(folder, { recursive: true, force: true }))
  beforeEach(() => rm(join(folder, 'migrations', NEXT), { force: true }))

  const addMigration = () => writeFile(join(folder, 'migrations', NEXT), MIGRATION)

  test('an upgrade under load loses no acknowledged request, and no request fails', {
    timeout: 120_000,
  }, async t => {
    const database = await testDatabase()
    const smtp = await smtpServer()
    const env = { ...settingsFor(database.url, smtp.url), THROTTLE_REQUEST_OTP: '1000000' }
    const all: Service[] = []
    let load: ReturnType<typeof startLoad> | undefined
    t.after(async () => {
      await load?.stop()
      await Promise.all(all.map(service => service.stop('SIGKILL')))
      await smtp.close()
      await database.drop()
    })
    async function start(count: number, from: string): Promise<Service[]> {
      const started = await Promise.all(Array.from({ length: count }, () => startService(env, from)))
      all.push(...started)
      return started
    }

    // The load sends its requests to the services in `targets`. In production, a load balancer keeps such a list.
    const targets = await start(2, folder)
    const old = [...targets]
    const players = await makePlayers(database.sql)
    const token = await signUpByMail(old, smtp, 'reader@example.com')
    const stream = await openStream(old[0]!.address, token)
    assert.equal((await stream.next()).event, 'sync')
    load = startLoad(targets, players)
    const { emails, scores } = load.acknowledged
    await load.more()

    // The test adds the migration `NEXT` to the program folder of the running version. The running version stays ready.
    await addMigration()
    assert.equal((await fetch(`${old[0]!.address}/readyz`)).status, 200)
    const [first, second] = await start(2, folder)
    const applied = [first!, second!].flatMap(service => service.lines.filter(line => line.includes(NEXT)))
    assert.equal(applied.length, 1)

    // Both versions serve requests. A stream of the old version delivers an event that the new version received.
    targets.push(first!, second!)
    await load.more()
    assert.equal((await fetch(`${old[0]!.address}/readyz`)).status, 200)
    const [reader] = await database.sql<{ id: number }>`select id from app_user where email = 'reader@example.com'`
    assert.equal(
      (await post([first!], '/internal/v1/events', joinedEvent(players[0]!, reader!.id), INTAKE_KEY))?.status,
      202,
    )
    assert.equal((await stream.next()).data.type, 'game_joined')

    targets.splice(0, 2)
    for (const service of old) assert.equal(await service.stop(), 0)
    assert.equal(await stream.ended(), true)
    await assert.rejects(startService(env), /newer than this program: it has 9999_next\.sql\. Start the newer program/)
    await load.more()
    await load.stop()

    assert.deepEqual([...load.statuses].sort(), [200, 202])
    const counts = await countAnnouncements(database.sql)
    for (const id of scores) assert.equal(counts.get(id), 3, `score ${id}`)
    await smtp.until(() => [...emails].every(email => mailsTo(email) > 0))
    for (const email of emails) assert.equal(mailsTo(email), 1, email)
    for (const service of [first!, second!]) assert.equal(await service.stop(), 0)

    function mailsTo(email: string): number {
      return smtp.mails.filter(mail => mail.to.includes(email)).length
    }
  })

  test('a migration that waits until a running dump releases its table lock does not block other statements', {
    timeout: 60_000,
  }, async () => {
    const database = await testDatabase()
    await addMigration()
    // The imported module is a copy of `src/db/migrate.ts` in a folder that contains the migration `NEXT`.
    const next = (await import(join(folder, 'src/db/migrate.ts'))) as { migrate: typeof migrate }
    let applied: Promise<string[]> | undefined
    await database.sql.begin(async dump => {
      await dump`lock table notification in access share mode`
      applied = next.migrate(database.url)
      await waitUntil(() => waitsForLock(database.sql, '^\\s*alter table'))
      assert.deepEqual(await database.sql`select id from notification`, [])
    })
    assert.deepEqual(await applied, [NEXT])
    await database.drop()
  })
})

/** Returns a `game_joined` event: the user `actor` joins a game that the user `reader` created. */
function joinedEvent(actor: number, reader: number) {
  return {
    specversion: '1.0',
    id: 'joined',
    source: '/upgrade',
    type: 'game_joined',
    time: '2026-01-17T18:00:00Z',
    data: {
      game_id: 1_000,
      creator_id: reader,
      player_ids: [reader, actor],
      actor_id: actor,
      starts_at: '2040-01-01T18:00:00Z',
    },
  }
}

import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, describe, test } from 'node:test'
import type { migrate } from '../src/db/migrate.ts'
import { INTAKE_KEY, settingsFor } from './support/app.ts'
import { isHeldUp, testDatabase } from './support/database.ts'
import { openStream } from './support/event-stream.ts'
import { announcements, makePlayers, post, signUpByMail, startLoad } from './support/load.ts'
import { copyProgram, type Service, startService } from './support/service.ts'
import { smtpServer } from './support/smtp.ts'

// As CONTRIBUTING.md wants it of a migration: what the version before says to the database goes on working, and tables are
// locked in the order in which it locks them.
const NEXT = '9999_next.sql'
const MIGRATION = `
  alter table app_user add column next text not null default '';
  alter table notification add column next text;
  create index app_user_next on app_user (next);`

describe('the version after this one', () => {
  let folder: string

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'courtside-next-'))
    await copyProgram(folder)
  })
  after(() => rm(folder, { recursive: true, force: true }))
  beforeEach(() => rm(join(folder, 'migrations', NEXT), { force: true }))

  const unpack = () => writeFile(join(folder, 'migrations', NEXT), MIGRATION)

  test('takes over from this one under load: all that was acknowledged is kept, and nothing else is answered', {
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

    // Whom the load's clients ask: a proxy in front would be told the same.
    const asked = await start(2, folder)
    const old = [...asked]
    const players = await makePlayers(database.sql)
    const token = await signUpByMail(old, smtp, 'reader@example.com')
    const stream = await openStream(old[0]!.address, token)
    assert.equal((await stream.next()).event, 'sync')
    load = startLoad(asked, players)
    const { emails, scores } = load.acknowledged
    await load.more()

    // Unpacked over the running one, which is none the less ready.
    await unpack()
    assert.equal((await fetch(`${old[0]!.address}/readyz`)).status, 200)
    const [first, second] = await start(2, folder)
    const applied = [first!, second!].flatMap(service => service.lines.filter(line => line.includes(NEXT)))
    assert.equal(applied.length, 1)

    // Both versions serve, and a stream of the old one tells what the new one has taken in.
    asked.push(first!, second!)
    await load.more()
    assert.equal((await fetch(`${old[0]!.address}/readyz`)).status, 200)
    const [reader] = await database.sql<{ id: number }>`select id from app_user where email = 'reader@example.com'`
    assert.equal(
      (await post([first!], '/internal/v1/events', joined(players[0]!, reader!.id), INTAKE_KEY))?.status,
      202,
    )
    assert.equal((await stream.next()).data.type, 'game_joined')

    asked.splice(0, 2)
    for (const service of old) assert.equal(await service.stop(), 0)
    assert.equal(await stream.ended(), true)
    await assert.rejects(startService(env), /newer than this program: it has 9999_next\.sql\. Start the newer program/)
    await load.more()
    await load.stop()

    assert.deepEqual([...load.statuses].sort(), [200, 202])
    const told = await announcements(database.sql)
    for (const id of scores) assert.equal(told.get(id), 3, `score ${id}`)
    await smtp.until(() => [...emails].every(email => mailsTo(email) > 0))
    for (const email of emails) assert.equal(mailsTo(email), 1, email)
    for (const service of [first!, second!]) assert.equal(await service.stop(), 0)

    function mailsTo(email: string): number {
      return smtp.mails.filter(mail => mail.to.includes(email)).length
    }
  })

  test('that waits for a table which a dump holds lets the others pass', { timeout: 60_000 }, async () => {
    const database = await testDatabase()
    await unpack()
    // A module of its own, that knows the new file.
    const next = (await import(join(folder, 'src/db/migrate.ts'))) as { migrate: typeof migrate }
    let applied: Promise<string[]> | undefined
    await database.sql.begin(async dump => {
      await dump`lock table notification in access share mode`
      applied = next.migrate(database.url)
      while (!(await isHeldUp(database.sql, '^\\s*alter table'))) await new Promise(setImmediate)
      assert.deepEqual(await database.sql`select id from notification`, [])
    })
    assert.deepEqual(await applied, [NEXT])
    await database.drop()
  })
})

/** That the reader has a game that somebody joined. */
function joined(actor: number, reader: number) {
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

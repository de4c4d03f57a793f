import assert from 'node:assert/strict'
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { batchRequest, makeEvent } from '../events.ts'
import { type Bench, compare, type Figures } from '../measure.ts'
import { administer } from '../postgres.ts'
import { startService } from '../programs.ts'
import { formatRatio, goalRow, type Part } from '../report.ts'
import { seedService } from '../seed.ts'

const USERS = 5_000
const SUBSCRIPTIONS = 10_000
const BATCH = 100
const RECIPIENTS = 3
const ROOT = new URL('../..', import.meta.url).pathname

/**
 * Measures how much CPU the announcement of new notifications costs a producer: batches of 100 events, with 10,000 push
 * subscriptions and no worker. The other program is the same build without the insert of the announcement.
 */
export async function announcements(bench: Bench): Promise<Part> {
  const folder = await copyWithoutAnnouncements()
  const urls = await Promise.all(['with', 'without'].map(name => createDatabase(bench, `announcements_${name}`)))
  await subscribe(urls[0]!)
  const programs = await Promise.all([startService(urls[0]!), startService(urls[1]!, {}, folder)])
  try {
    const figures = await compare(
      bench,
      programs.map((program, index) => ({
        name: index === 0 ? program.name : 'without announcements',
        programs: [program],
        next: () => batchRequest(Array.from({ length: BATCH }, () => makeEvent(USERS))),
        check: checkBatch,
        connections: 4,
      })),
    )
    if (bench.smoke) await checkAnnouncements(urls)
    const [own, other] = figures.map(sumCpu) as [number, number]
    return {
      rows: [
        goalRow(
          `a batch of 100 events with ${SUBSCRIPTIONS} subscriptions: CPU relative to the same build without announcements`,
          own / other,
          { max: 1.15 },
          formatRatio,
        ),
      ],
      comparisons: [{ work: 'a batch of 100 events, with announcements', figures }],
    }
  } finally {
    await Promise.all(programs.map(program => program.stop()))
    await rm(folder, { recursive: true })
  }
}

function sumCpu({ cpu, databaseCpu }: Figures): number {
  return cpu + databaseCpu
}

function checkBatch({ results }: any): void {
  assert.equal(results.length, BATCH)
  for (const { status, notifications } of results) assert.deepEqual([status, notifications], ['accepted', RECIPIENTS])
}

async function createDatabase({ postgres }: Bench, name: string): Promise<string> {
  const url = await postgres.createMigrated(name)
  await seedService(url, { users: USERS, notifications: USERS })
  return url
}

async function subscribe(url: string): Promise<void> {
  await administer(
    url,
    `insert into push_subscription (user_id, session_id, endpoint, p256dh, auth, public_key, created_at, confirmed_at)
    select user_id, id, 'https://fcm.googleapis.com/' || user_id || '/' || device, 'p256dh', 'auth', 'key', now(), now()
    from session cross join generate_series(1, ${SUBSCRIPTIONS / USERS}) as device`,
  )
}

/** Copies the program into a folder, and removes the statement that adds the announcement to the outbox. */
async function copyWithoutAnnouncements(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'courtside-bench-'))
  for (const part of ['bin', 'src', 'migrations', 'package.json']) {
    await cp(join(ROOT, part), join(folder, part), { recursive: true })
  }
  for (const part of ['node_modules', 'client']) await symlink(join(ROOT, part), join(folder, part))
  const path = join(folder, 'src/notifications/announce.ts')
  const source = await readFile(path, 'utf8')
  const changed = source.replace(/^ *queueDeliveries\(.*$/m, '')
  assert.notEqual(changed, source)
  await writeFile(path, changed)
  return folder
}

/** Checks that only the unchanged program has added announcements. */
async function checkAnnouncements(urls: string[]): Promise<void> {
  for (const [index, url] of urls.entries()) {
    const rows = await administer(url, `select count(*)::integer as count from outbox where channel = 'announcement'`)
    assert.equal(rows[0]!.count > 0, index === 0)
  }
}

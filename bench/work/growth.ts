import assert from 'node:assert/strict'
import { makeEvent, reportRequest } from '../events.ts'
import { type Bench, type Contender, compare } from '../measure.ts'
import { administer } from '../postgres.ts'
import { type Program, startService } from '../programs.ts'
import { formatRatio, goalRow, type Part } from '../report.ts'
import { get, pickRandom, post } from '../requests.ts'
import { callers, pickNotificationId, type Seed, seedService } from '../seed.ts'

const SMALL: Seed = { users: 1_000, notifications: 10_000 }
export const LARGE: Seed = { users: 1_000_000, notifications: 10_000_000 }

// The same number of users sends requests to both services, so the services differ only in the size of their databases.
const CALLER_COUNT = 1_000
// In both databases, the first HEAVY_USERS users have enough notifications to fill page 50.
const HEAVY_USERS = 5
const HEAVY_NOTIFICATIONS = 1_000

/**
 * Sends the same requests to two services. The database of the second service has 1 000 times as many rows as the
 * database of the first.
 */
export async function growth(bench: Bench): Promise<Part> {
  const [few, many] = bench.smoke ? [SMALL, { users: 2_000, notifications: 20_000 }] : [SMALL, LARGE]
  // Create a new small database in each run. The rows that a previous run added would make it noticeably larger.
  const urls = [await createSeededDatabase(bench, 'small', few), await findOrCreateDatabase(bench, 'large', many)]
  const programs = await Promise.all(urls.map(url => startService(url)))
  for (const url of urls) await warmCaches(url)
  const part: Part = { rows: [], comparisons: [] }
  try {
    const works = [
      contendersFor(few, programs[0]!, '10 000 notifications'),
      contendersFor(many, programs[1]!, '10 000 000 notifications'),
    ]
    for (const work of Object.keys(works[0]!)) {
      if (bench.just !== undefined && bench.just !== work) continue
      const contenders = works.map(each => each[work]!)
      const figures = await compare(bench, contenders, 'the slowest')
      const [small, large] = figures
      part.comparisons!.push({ work, figures })
      part.rows.push(
        growthRow(`${work}: p50`, small!.p50, large!.p50),
        growthRow(`${work}: p99`, small!.p99, large!.p99),
      )
    }
  } finally {
    await Promise.all(programs.map(program => program.stop()))
  }
  return part
}

function growthRow(figure: string, small: number, large: number) {
  const title = `${figure} with 10 000 000 notifications relative to 10 000`
  return goalRow(title, large / small, { max: 1.3 }, formatRatio)
}

/** Returns the URL of the database with this name. If the database does not exist, it is created from the seed. */
export async function findOrCreateDatabase(bench: Pick<Bench, 'postgres'>, name: string, seed: Seed): Promise<string> {
  const existing = await bench.postgres.findDatabase(name)
  if (existing) return existing
  await createSeededDatabase(bench, `${name}_draft`, seed)
  return bench.postgres.renameDatabase(`${name}_draft`, name)
}

/** Creates a database from the seed. @returns the URL */
async function createSeededDatabase(bench: Pick<Bench, 'postgres'>, name: string, seed: Seed): Promise<string> {
  const url = await bench.postgres.createMigrated(name)
  await seedService(url, seed)
  await administer(
    url,
    `insert into notification (user_id, type, title, message, data, read_at, created_at, updated_at, dedup_key, actor_id,
      locale)
    select owner, type, title, message, data, case when i % 10 > 0 then now() end, now(), now(), 'heavy-' || i, 2, 'fr'
    from generate_series(1, ${HEAVY_NOTIFICATIONS}) as i cross join generate_series(1, ${HEAVY_USERS}) as owner
      cross join (select * from notification where id = 1) as one`,
  )
  await administer(url, 'vacuum analyze notification')
  return url
}

/**
 * Loads the tables into the cache of the operating system, and the indexes into the shared buffers of PostgreSQL. A
 * server that has run for some time also has its tables and indexes in these caches. Without this step, most requests
 * would wait for the disk during the first hours, until PostgreSQL has read every page once.
 */
async function warmCaches(url: string): Promise<void> {
  await administer(url, 'create extension if not exists pg_prewarm')
  for (const [kind, into] of [
    ['r', 'read'],
    ['i', 'buffer'],
  ]) {
    await administer(
      url,
      `select pg_prewarm(oid, '${into}') from pg_class
      where relkind = '${kind}' and relnamespace = 'courtside'::regnamespace`,
    )
  }
}

function contendersFor(seed: Seed, program: Program, name: string): Record<string, Contender> {
  const spread = Math.floor((seed.users - HEAVY_USERS) / CALLER_COUNT)
  const people = callers(
    Array.from({ length: CALLER_COUNT - HEAVY_USERS }, (_, index) => HEAVY_USERS + 1 + index * Math.max(1, spread)),
  )
  const heavy = callers(HEAVY_USERS)
  const contender = (next: () => string, check: (body: any) => void) => ({ name, programs: [program], next, check })
  return {
    'unread-count': contender(
      () => get('/api/v1/notifications/unread-count', pickRandom(people).token),
      body => assert.ok(body.unread_count <= 2),
    ),
    'page 1': contender(
      () => get('/api/v1/notifications?page=1', pickRandom(people).token),
      ({ data }) => assert.equal(data.length, 10),
    ),
    'page 50': contender(
      () => get('/api/v1/notifications?page=50', pickRandom(heavy).token),
      ({ data }) => assert.equal(data.length, 20),
    ),
    read: contender(
      () => {
        const { userId, token } = pickRandom(people)
        return post(`/api/v1/notifications/${pickNotificationId(userId, seed)}/read`, undefined, token)
      },
      ({ data }) => assert.equal(data.is_read, true),
    ),
    intake: contender(
      () => reportRequest(makeEvent(seed.users)),
      ({ status }) => assert.equal(status, 'accepted'),
    ),
  }
}

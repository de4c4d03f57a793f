import assert from 'node:assert/strict'
import { report, someEvent } from '../events.ts'
import { type Bench, type Contender, compare } from '../measure.ts'
import { administer } from '../postgres.ts'
import { type Program, startService } from '../programs.ts'
import { type Part, ratio, row } from '../report.ts'
import { get, oneOf, post } from '../requests.ts'
import { callers, type Seed, seedService, someNotification } from '../seed.ts'

const SMALL: Seed = { users: 1_000, notifications: 10_000 }
export const LARGE: Seed = { users: 1_000_000, notifications: 10_000_000 }

// Who asks: as many in the small club as in the large, or it would be their number that is compared.
const CALLERS = 1_000
// Five people of each have enough for a page 50.
const HEAVY = 5
const HEAVY_MORE = 1_000

/** The same requests to two services: one whose database is nearly empty, and one with 1 000 times as much. */
export async function growth(bench: Bench): Promise<Part> {
  const [few, many] = bench.smoke ? [SMALL, { users: 2_000, notifications: 20_000 }] : [SMALL, LARGE]
  // The small one would be small no more: what a run adds is many times what it has.
  const urls = [await fresh(bench, 'small', few), await grown(bench, 'large', many)]
  const programs = await Promise.all(urls.map(url => startService(url)))
  for (const url of urls) await warm(url)
  const part: Part = { rows: [], figures: [] }
  try {
    const works = [worksOf(few, programs[0]!, '10 000 notifications'), worksOf(many, programs[1]!, '10 000 000')]
    for (const work of Object.keys(works[0]!)) {
      if (bench.just !== undefined && bench.just !== work) continue
      const of = await compare(
        bench,
        works.map(each => each[work]!),
        'the slowest',
      )
      const [small, large] = of
      part.figures!.push({ work, of })
      part.rows.push(
        row(`${work} at 10 000 000, p50 of that at 10 000`, large!.p50 / small!.p50, { most: 1.3 }, ratio),
        row(`${work} at 10 000 000, p99 of that at 10 000`, large!.p99 / small!.p99, { most: 1.3 }, ratio),
      )
    }
  } finally {
    await Promise.all(programs.map(program => program.stop()))
  }
  return part
}

/** A database of that size; one that is there already is taken as it is. */
export async function grown(bench: Pick<Bench, 'postgres'>, name: string, seed: Seed): Promise<string> {
  const known = await bench.postgres.findDatabase(name)
  if (known) return known
  await fresh(bench, `${name}_draft`, seed)
  return bench.postgres.renameDatabase(`${name}_draft`, name)
}

/** A new database of that size. */
async function fresh(bench: Pick<Bench, 'postgres'>, name: string, seed: Seed): Promise<string> {
  const url = await bench.postgres.createMigrated(name)
  await seedService(url, seed)
  await administer(
    url,
    `insert into notification (user_id, type, title, message, data, read_at, created_at, updated_at, fact, actor_id, locale)
    select owner, type, title, message, data, case when i % 10 > 0 then now() end, now(), now(), 'heavy-' || i, 2, 'fr'
    from generate_series(1, ${HEAVY_MORE}) as i cross join generate_series(1, ${HEAVY}) as owner
      cross join (select * from notification where id = 1) as one`,
  )
  await administer(url, 'vacuum analyze notification')
  return url
}

/**
 * What a server has in memory that has run for a while: the tables in the system's, the indexes in PostgreSQL's own. Else it is
 * the disk that is measured, and for hours, until all pages have been asked for once.
 */
async function warm(url: string): Promise<void> {
  await administer(url, 'create extension if not exists pg_prewarm')
  for (const [kind, into] of [
    ['r', 'read'],
    ['i', 'buffer'],
  ]) {
    await administer(
      url,
      `select pg_prewarm(oid, '${into}') from pg_class where relkind = '${kind}' and relnamespace = 'public'::regnamespace`,
    )
  }
}

function worksOf(seed: Seed, program: Program, name: string): Record<string, Contender> {
  const spread = Math.floor((seed.users - HEAVY) / CALLERS)
  const people = callers(Array.from({ length: CALLERS - HEAVY }, (_, index) => HEAVY + 1 + index * Math.max(1, spread)))
  const heavy = callers(HEAVY)
  const contender = (next: () => string, check: (body: any) => void) => ({ name, programs: [program], next, check })
  return {
    'unread-count': contender(
      () => get('/api/v1/notifications/unread-count', oneOf(people).token),
      body => assert.ok(body.unread_count <= 2),
    ),
    'page 1': contender(
      () => get('/api/v1/notifications?page=1', oneOf(people).token),
      ({ data }) => assert.equal(data.length, 10),
    ),
    'page 50': contender(
      () => get('/api/v1/notifications?page=50', oneOf(heavy).token),
      ({ data }) => assert.equal(data.length, 20),
    ),
    read: contender(
      () => {
        const { userId, token } = oneOf(people)
        return post(`/api/v1/notifications/${someNotification(userId, seed)}/read`, undefined, token)
      },
      ({ data }) => assert.equal(data.is_read, true),
    ),
    intake: contender(
      () => report(someEvent(seed.users)),
      ({ status }) => assert.equal(status, 'accepted'),
    ),
  }
}

import assert from 'node:assert/strict'
import { type Bench, CONNECTIONS, type Contender, compare } from '../measure.ts'
import { type Program, startProgram, startService } from '../programs.ts'
import { type Part, formatRatio, goalRow } from '../report.ts'
import { get, pickRandom } from '../requests.ts'
import { callers, seedService } from '../seed.ts'

const SEED = { users: 5_000, notifications: 250_000 }

/**
 * One, two and four web processes on one database, each of them with the load that the one has, and as many of the ceiling's. Two
 * cores bound what all of them can do together, so that what an answer costs is compared. Beside them, for what becomes of one
 * load that is dealt out to four: four, and one, with a fourth of the connections each.
 */
export async function processes(bench: Bench): Promise<Part> {
  const seed = bench.smoke ? { users: 1_000, notifications: 20_000 } : SEED
  const url = await bench.postgres.createMigrated('processes')
  await seedService(url, seed)
  const counts = bench.smoke ? [1, 2] : [1, 2, 4]
  const started = (start: () => Promise<Program>) =>
    Promise.all(Array.from({ length: Math.max(...counts) }, () => start()))
  const services = await started(() => startService(url))
  const ceilings = await started(() => startProgram('ceiling', url))
  const requests = callers(1_000).map(({ token }) => get('/api/v1/notifications?page=1', token))
  const some = (programs: Program[], of: string, count: number, each = CONNECTIONS): Contender => ({
    name: `${count === 1 ? 'one process' : `${count} processes`}${of}${each === CONNECTIONS ? '' : `, ${each} connections each`}`,
    programs: programs.slice(0, count),
    next: () => pickRandom(requests),
    connections: count * each,
    check: ({ data }) => assert.equal(data.length, 20),
  })
  const all = (programs: Program[], of: string) => [
    ...counts.map(count => some(programs, of, count)),
    ...[1, counts.at(-1)!].map(count => some(programs, of, count, CONNECTIONS / 4)),
  ]
  try {
    const of = await compare(bench, [...all(services, ''), ...all(ceilings, ' of the ceiling')])
    const [one, ...more] = of.slice(0, counts.length)
    return {
      rows: more.map(each =>
        goalRow(`${each.name}, CPU of an answer (page 1), of that of one`, each.cpu / one!.cpu, { most: 1.1 }, formatRatio),
      ),
      figures: [{ work: 'page 1', of }],
    }
  } finally {
    await Promise.all([...services, ...ceilings].map(program => program.stop()))
  }
}

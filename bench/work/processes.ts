import assert from 'node:assert/strict'
import { type Bench, CONNECTIONS, type Contender, compare } from '../measure.ts'
import { type Program, startProgram, startService } from '../programs.ts'
import { formatRatio, goalRow, type Part } from '../report.ts'
import { get, pickRandom } from '../requests.ts'
import { callers, seedService } from '../seed.ts'

const SEED = { users: 5_000, notifications: 250_000 }

/**
 * Measures one, two and four web processes on one database. For comparison, measures one, two and four processes of the
 * ceiling, the minimal server in `programs/ceiling.ts`. Each process gets the same load. The two cores of the machine
 * limit the total throughput, so the rows compare the CPU time per answer. In further runs with one and with four
 * processes, each process gets only a quarter of this load. So the four processes together get as much load as one
 * process in the first runs.
 */
export async function processes(bench: Bench): Promise<Part> {
  const seed = bench.smoke ? { users: 1_000, notifications: 20_000 } : SEED
  const url = await bench.postgres.createMigrated('processes')
  await seedService(url, seed)
  const counts = bench.smoke ? [1, 2] : [1, 2, 4]
  const startAll = (start: () => Promise<Program>) =>
    Promise.all(Array.from({ length: Math.max(...counts) }, () => start()))
  const services = await startAll(() => startService(url))
  const ceilings = await startAll(() => startProgram('ceiling', url))
  const requests = callers(1_000).map(({ token }) => get('/api/v1/notifications?page=1', token))
  const makeContender = (programs: Program[], suffix: string, count: number, each = CONNECTIONS): Contender => ({
    name: [
      `${count === 1 ? 'one process' : `${count} processes`}${suffix}`,
      ...(each === CONNECTIONS ? [] : [`${each} connections${count === 1 ? '' : ' each'}`]),
    ].join(', '),
    programs: programs.slice(0, count),
    next: () => pickRandom(requests),
    connections: count * each,
    check: ({ data }) => assert.equal(data.length, 20),
  })
  const makeContenders = (programs: Program[], suffix: string) => [
    ...counts.map(count => makeContender(programs, suffix, count)),
    ...[1, counts.at(-1)!].map(count => makeContender(programs, suffix, count, CONNECTIONS / 4)),
  ]
  try {
    const contenders = [...makeContenders(services, ''), ...makeContenders(ceilings, ' of the ceiling')]
    const figures = await compare(bench, contenders)
    const [one, ...more] = figures.slice(0, counts.length)
    return {
      rows: more.map(each =>
        goalRow(
          `${each.name}: CPU per answer (page 1) relative to one process`,
          each.cpu / one!.cpu,
          { max: 1.1 },
          formatRatio,
        ),
      ),
      comparisons: [{ work: 'page 1', figures }],
    }
  } finally {
    await Promise.all([...services, ...ceilings].map(program => program.stop()))
  }
}

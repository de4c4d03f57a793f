import type { Answer } from './connection.ts'
import { type Load, type LoadResult, load } from './load.ts'
import type { Postgres } from './postgres.ts'
import type { Program } from './programs.ts'

export type Bench = {
  postgres: Postgres
  /** Of each figure the median of so many runs is taken. */
  rounds: number
  /** How long a run takes. */
  seconds: number
  /** Without times: a handful of requests, whose answers are looked at. */
  smoke: boolean
  /** Of a part with several works, this one alone. */
  just: string | undefined
  /** Another checkout, to be measured beside this one. */
  against: string | undefined
}

/** A program, or several of one kind, with the requests it gets. */
export type Contender = {
  name: string
  programs: Program[]
  next: () => string
  /** How many at once; by default CONNECTIONS. */
  connections?: number
  /** Looks at an answer of the smoke bench. @throws when it isn't right */
  check: (answer: any) => void
}

export type Figures = {
  name: string
  perSecond: number
  /** CPU microseconds a request: of the programs themselves, and of PostgreSQL. */
  cpu: number
  databaseCpu: number
  /** Milliseconds at the common rate, if that was measured. */
  p50: number
  p99: number
  /** How much of a core the generator used at its busiest, 0 to 1. */
  busy: number
}

export const CONNECTIONS = 32

const LEAD_IN_SECONDS = 0.5
const WARM_UP_SECONDS = 2

/** A tail differs from run to run more than a throughput does: its median is taken of so many times as many runs. */
const RUNS_FOR_TAIL = 3

/**
 * Measures contenders side by side: A B C A B C …, of each the median. First as much as they can answer, then, with all at
 * the same rate, how long it takes: half of what `paceSetter`, or 'the slowest' of them, can do.
 */
export async function compare(bench: Bench, contenders: Contender[], paceSetter?: string): Promise<Figures[]> {
  if (bench.smoke) {
    for (const contender of contenders) await smoke(contender)
    return contenders.map(({ name }) => ({ name, perSecond: 0, cpu: 0, databaseCpu: 0, p50: 0, p99: 0, busy: 0 }))
  }
  // Each process has its own code to get warm.
  for (const contender of contenders) {
    await run(bench, contender, { seconds: WARM_UP_SECONDS * contender.programs.length })
  }
  const most = await interleave(bench, contenders, bench.rounds, {})
  const figures = contenders.map(({ name }) => {
    const runs = most.get(name)!
    return {
      name,
      perSecond: median(runs.map(each => each.perSecond)),
      cpu: median(runs.map(each => each.cpu)),
      databaseCpu: median(runs.map(each => each.databaseCpu)),
      p50: Number.NaN,
      p99: Number.NaN,
      busy: Math.max(...runs.map(each => each.busy)),
    }
  })
  if (paceSetter === undefined) return figures
  const paces = figures.filter(({ name }) => paceSetter === 'the slowest' || name === paceSetter)
  const rate = Math.min(...paces.map(({ perSecond }) => perSecond)) / 2
  const paced = await interleave(bench, contenders.filter(keepsUp), bench.rounds * RUNS_FOR_TAIL, { rate })
  return figures.map(each => {
    const runs = paced.get(each.name) ?? []
    return { ...each, p50: medianQuantile(runs, 0.5), p99: medianQuantile(runs, 0.99) }
  })

  /** Who can't answer at that rate has no percentiles at it, only a queue. */
  function keepsUp({ name }: Contender): boolean {
    return figures.find(each => each.name === name)!.perSecond > rate * 1.2
  }
}

type Run = LoadResult & { cpu: number; databaseCpu: number }

async function interleave(
  bench: Bench,
  contenders: Contender[],
  rounds: number,
  more: Partial<Load>,
): Promise<Map<string, Run[]>> {
  const runs = new Map<string, Run[]>(contenders.map(({ name }) => [name, []]))
  for (let round = 0; round < rounds; round += 1) {
    for (const contender of contenders) runs.get(contender.name)!.push(await run(bench, contender, more))
  }
  return runs
}

async function run(
  bench: Bench,
  { programs, next, connections = CONNECTIONS }: Contender,
  more: Partial<Load>,
): Promise<Run> {
  const ports = programs.map(({ port }) => port)
  // It has stood idle while the others were measured: what it had in memory has gone cold, and sessions are forgotten after 5 s.
  await load({ ports, connections, next, ...more, seconds: LEAD_IN_SECONDS * programs.length })
  const cpu = async () => (await Promise.all(programs.map(each => each.cpuSeconds()))).reduce((sum, used) => sum + used)
  const before = [await cpu(), await bench.postgres.cpuSeconds()] as const
  const loaded = await load({ ports, connections, seconds: bench.seconds, next, ...more })
  const [own, database] = [(await cpu()) - before[0], (await bench.postgres.cpuSeconds()) - before[1]]
  return { ...loaded, cpu: (own / loaded.requests) * 1e6, databaseCpu: (database / loaded.requests) * 1e6 }
}

/** A few requests, four at a time, each answer looked at. */
async function smoke({ programs, next, check }: Contender): Promise<void> {
  const ports = programs.map(({ port }) => port)
  await load({ ports, connections: 4, count: 12, next, check: answer => check(parseBody(answer)) })
}

export function parseBody({ body }: Answer): any {
  return JSON.parse(body.toString())
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5)
}

export function quantile(values: readonly number[], q: number): number {
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? Number.NaN
}

function medianQuantile(runs: readonly Run[], q: number): number {
  return median(runs.map(({ latencies }) => quantile(latencies, q)))
}

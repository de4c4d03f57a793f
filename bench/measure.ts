import type { Answer } from './connection.ts'
import { type Load, type LoadResult, load } from './load.ts'
import type { Postgres } from './postgres.ts'
import type { Program } from './programs.ts'
import type { Servers } from './servers.ts'

export type Bench = {
  postgres: Postgres
  /** Returns the servers on which the bench measures writes. The first call starts them. */
  servers: () => Promise<Servers>
  /** The number of runs. Each figure is the median of these runs. */
  rounds: number
  /** The duration of a run. */
  seconds: number
  /** Whether to send only a few requests and check the answers, without measuring. */
  smoke: boolean
  /**
   * The name of a workload. In a part with several workloads, the bench measures only this workload. If the name is
   * undefined, the bench measures all workloads.
   */
  just: string | undefined
  /**
   * The folder of another checkout. The bench also measures the service of this folder, for comparison. If undefined,
   * the bench measures only the service of the checkout that contains the bench.
   */
  against: string | undefined
}

/** A measured program: its processes, and the requests to send to them. */
export type Contender = {
  name: string
  programs: Program[]
  next: () => string
  /** The number of connections that send requests. The default is CONNECTIONS. */
  connections?: number
  /** Checks the JSON of an answer in the smoke bench. @throws if the answer is wrong */
  check: (answer: any) => void
}

export type Figures = {
  name: string
  perSecond: number
  /** The CPU time of the programs per request, in microseconds. */
  cpu: number
  /** The CPU time of PostgreSQL per request, in microseconds. */
  databaseCpu: number
  /**
   * The median latency in milliseconds, at a rate that is the same for all contenders. `p50` and `p99` are NaN if no
   * latency was measured.
   */
  p50: number
  p99: number
  /** The highest share of a core that the load generator used in a run, from 0 to 1. */
  busy: number
}

export const CONNECTIONS = 32

const LEAD_IN_SECONDS = 0.5
const WARM_UP_SECONDS = 2

/**
 * Latencies vary more from run to run than the throughput does. So the bench measures latencies in more runs: the
 * number of rounds times this factor.
 */
const LATENCY_RUNS_FACTOR = 3

/**
 * Measures contenders in turn (A B C A B C …) and returns the medians for each contender. First measures the
 * throughput of all contenders, and then the latencies of all contenders at a common rate.
 * @param paceSetter the name of a contender, or 'the slowest'. The rate is half of this contender's throughput. If
 * `paceSetter` is undefined, this function measures no latencies.
 */
export async function compare(bench: Bench, contenders: Contender[], paceSetter?: string): Promise<Figures[]> {
  if (bench.smoke) {
    for (const contender of contenders) await smoke(contender)
    return contenders.map(({ name }) => ({ name, perSecond: 0, cpu: 0, databaseCpu: 0, p50: 0, p99: 0, busy: 0 }))
  }
  // These runs are a warm-up: in each process, V8 must compile the code before the first measured run.
  for (const contender of contenders) {
    await run(bench, contender, { seconds: WARM_UP_SECONDS * contender.programs.length })
  }
  const runsByName = await interleave(bench, contenders, bench.rounds, {})
  const figures = contenders.map(({ name }) => {
    const runs = runsByName.get(name)!
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
  const paced = await interleave(bench, contenders.filter(keepsUp), bench.rounds * LATENCY_RUNS_FACTOR, { rate })
  return figures.map(each => {
    const runs = paced.get(each.name) ?? []
    return { ...each, p50: medianQuantile(runs, 0.5), p99: medianQuantile(runs, 0.99) }
  })

  /**
   * Returns whether a contender can keep up with the rate. If a contender is slower than the rate, its waiting requests
   * pile up during the whole run. Its latencies then depend on the length of the run, so they are not measured.
   */
  function keepsUp({ name }: Contender): boolean {
    return figures.find(each => each.name === name)!.perSecond > rate * 1.2
  }
}

type Run = LoadResult & { cpu: number; databaseCpu: number }

async function interleave(
  bench: Bench,
  contenders: Contender[],
  rounds: number,
  loadOptions: Partial<Load>,
): Promise<Map<string, Run[]>> {
  const runs = new Map<string, Run[]>(contenders.map(({ name }) => [name, []]))
  for (let round = 0; round < rounds; round += 1) {
    for (const contender of contenders) runs.get(contender.name)!.push(await run(bench, contender, loadOptions))
  }
  return runs
}

async function run(
  bench: Bench,
  { programs, next, connections = CONNECTIONS }: Contender,
  loadOptions: Partial<Load>,
): Promise<Run> {
  const ports = programs.map(({ port }) => port)
  // This contender was idle while the bench measured the other contenders, so its caches may be empty. For example, the
  // service caches a session for only 5 s. So send requests for a short time before the measurement.
  await load({ ports, connections, next, ...loadOptions, seconds: LEAD_IN_SECONDS * programs.length })
  const cpu = async () =>
    (await Promise.all(programs.map(each => each.cpuSeconds()))).reduce((sum, seconds) => sum + seconds)
  const before = [await cpu(), await bench.postgres.cpuSeconds()] as const
  const result = await load({ ports, connections, seconds: bench.seconds, next, ...loadOptions })
  const [used, databaseUsed] = [(await cpu()) - before[0], (await bench.postgres.cpuSeconds()) - before[1]]
  return { ...result, cpu: (used / result.requests) * 1e6, databaseCpu: (databaseUsed / result.requests) * 1e6 }
}

/** Sends a few requests, four at a time, and checks each answer. */
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

import { setTimeout as delay } from 'node:timers/promises'
import { type LoadResult, load } from '../load.ts'
import { type Bench, median, quantile } from '../measure.ts'
import { type Program, startService } from '../programs.ts'
import { formatNumber, formatRatio, goalRow, missingRow, type Part } from '../report.ts'
import { get, pickRandom, post, randomClientHeader } from '../requests.ts'
import { callers, seedService } from '../seed.ts'
import { emptyOutbox } from './writes.ts'

const SEED = { users: 5_000, notifications: 250_000 }
const USUAL_CONNECTIONS = [16, 32, 64]
const MANY_CONNECTIONS = 640
/** A run is longer than usual, because a refused client waits for up to 3 s. */
const SECONDS_FACTOR = 5
const PROBE_MS = 100

const GOALS = {
  goodput: {
    work: `${MANY_CONNECTIONS} connections: answers relative to the best of 16, 32 and 64`,
    goal: { min: 0.9 },
  },
  health: { work: `${MANY_CONNECTIONS} connections: the slowest answer of /healthz, s`, goal: { max: 0.5 } },
  memory: { work: `${MANY_CONNECTIONS} connections: memory, MB`, goal: { max: 250 } },
}

/**
 * Measures the service with ten times as many connections as it can use. Of the requests, 90 % read and 10 % request a
 * code, whose mail no worker sends. A client that gets a 503 waits as long as `Retry-After` says. A disk flush takes
 * 1.5 ms.
 */
export async function overload(bench: Bench): Promise<Part> {
  const { all, missing } = await bench.servers()
  if (missing !== undefined) {
    return { rows: Object.values(GOALS).map(({ work, goal }) => missingRow(work, goal, missing)) }
  }
  const seed = bench.smoke ? { users: 100, notifications: 5_000 } : SEED
  const url = await all[1]!.postgres.createMigrated('overload')
  await seedService(url, seed)
  const service = await startService(url)
  const emptying = emptyOutbox(url)
  const next = mixRequests(seed.users)
  const run = (connections: number, seconds: number) =>
    load({ ports: [service.port], connections, seconds, next, mayRefuse: true })
  try {
    if (bench.smoke) {
      await load({ ports: [service.port], connections: 100, count: 200, next, mayRefuse: true })
      return { rows: [] }
    }
    await run(32, 2)
    const usual = USUAL_CONNECTIONS.map((): number[] => [])
    const many: Probed[] = []
    for (let round = 0; round < bench.rounds; round += 1) {
      for (const [index, connections] of USUAL_CONNECTIONS.entries()) {
        usual[index]!.push((await run(connections, bench.seconds)).perSecond)
      }
      many.push(await probe(service, run(MANY_CONNECTIONS, bench.seconds * SECONDS_FACTOR)))
    }
    return report(usual, many)
  } finally {
    await emptying.stop()
    await service.stop()
  }
}

/**
 * Compares the rounds one by one, because the speed of the machine changes between rounds.
 * @param usual the answers per second of each round, for each usual number of connections
 */
function report(usual: number[][], many: Probed[]): Part {
  const { goodput, health, memory } = GOALS
  const best = usual.toSorted((one, other) => median(other) - median(one))[0]!
  const perSecond = median(many.map(({ result }) => result.perSecond))
  const slowest = Math.max(...many.map(({ healthMs }) => healthMs)) / 1000
  const latencies = many.flatMap(({ result }) => result.latencies)
  const refused = many.reduce((sum, { result }) => sum + result.refused, 0)
  return {
    rows: [
      goalRow(
        goodput.work,
        median(many.map(({ result }, round) => result.perSecond / best[round]!)),
        goodput.goal,
        formatRatio,
      ),
      goalRow(health.work, slowest, health.goal, formatNumber),
      goalRow(memory.work, Math.max(...many.map(each => each.memory)), memory.goal, formatNumber),
    ],
    notes: [
      `Overload: ${formatNumber(perSecond)} answers per second with ${MANY_CONNECTIONS} connections, and ${formatNumber(median(best))} with the best usual number. The median answer took ${formatNumber(quantile(latencies, 0.5))} ms, and 99 % took at most ${formatNumber(quantile(latencies, 0.99))} ms. ${formatNumber(refused)} of ${formatNumber(latencies.length + refused)} requests got a 503.`,
    ],
  }
}

function mixRequests(users: number): () => string {
  const people = callers(Math.min(users, 1_000))
  const reads = people.flatMap(({ token }) => [
    get('/api/v1/notifications/unread-count', token),
    get('/api/v1/notifications?page=1', token),
  ])
  let person = 0
  return () => {
    if (Math.random() < 0.9) return pickRandom(reads)
    person += 1
    const body = { email: `crowd${person}@example.com`, first_name: 'Marie', last_name: 'Durand', accept_cgu: true }
    return post('/api/v1/auth/request-otp', body, undefined, randomClientHeader())
  }
}

type Probed = { result: LoadResult; healthMs: number; memory: number }

/** Measures `/healthz` and the memory of the service during a load. */
async function probe(service: Program, running: Promise<LoadResult>): Promise<Probed> {
  const probed = { healthMs: 0, memory: 0 }
  let isOver = false
  const probing = (async () => {
    while (!isOver) {
      const sentAt = performance.now()
      await (await fetch(`http://127.0.0.1:${service.port}/healthz`)).arrayBuffer()
      probed.healthMs = Math.max(probed.healthMs, performance.now() - sentAt)
      probed.memory = Math.max(probed.memory, await service.memory())
      await delay(PROBE_MS)
    }
  })()
  const result = await running.finally(() => {
    isOver = true
  })
  await probing
  return { result, ...probed }
}

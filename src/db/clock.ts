import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import type { Query } from './sql.ts'

/**
 * If the clock of the database moves, for example with a failover, processes disagree for at most this time. While they
 * disagree by more than 60 s, they refuse each other's tokens.
 */
const MEASURE_MS = 5_000
const CHECK_MS = 1_000
/** If the clock of the machine moves by more than this against the monotonic clock, it was set. */
const MIN_STEP_MS = 500
const MAX_DIFFERENCE_MS = 5_000
/** If a round trip takes at most this time, one measurement is enough. Otherwise, the fastest of MAX_TRIES counts. */
const GOOD_ROUND_TRIP_MS = 20
const MAX_TRIES = 3

export type Clock = ReturnType<typeof createClock>

/**
 * Creates a clock that follows the clock of the database. So all processes agree about the time, even if the clocks of
 * their machines differ. Between two measurements, it counts with the monotonic clock. So a change of the machine's
 * clock does not change this clock. Before the first measurement, it returns the time of the machine.
 */
export function createClock(sql: Query, log: FastifyBaseLogger) {
  const stopping = new AbortController()
  let offsetMs: number | undefined
  let machineOffsetMs = findMachineOffset()
  let measuredAtMs = Number.NEGATIVE_INFINITY
  let hasWarned = false

  const findDifference = () => (offsetMs === undefined ? 0 : findMachineOffset() - offsetMs)

  /** Measures the clock of the database. @throws AppError 503 if the service cannot reach the database */
  async function measure(): Promise<void> {
    const { databaseOffsetMs, roundTripMs } = await measureBest(sql)
    // Measurements vary by up to half a round trip. Smaller differences are ignored, so the time does not go back.
    if (offsetMs === undefined || Math.abs(databaseOffsetMs - offsetMs) > roundTripMs / 2) offsetMs = databaseOffsetMs
    machineOffsetMs = findMachineOffset()
    measuredAtMs = performance.now()
    const differenceMs = Math.round(findDifference())
    const isWrong = Math.abs(differenceMs) > MAX_DIFFERENCE_MS
    if (isWrong && !hasWarned)
      log.warn({ differenceMs }, 'the clock of this machine differs from the clock of the database')
    hasWarned = isWrong
  }

  async function run(): Promise<void> {
    for (;;) {
      await delay(CHECK_MS, undefined, { signal: stopping.signal, ref: false })
      const isSet = Math.abs(findMachineOffset() - machineOffsetMs) > MIN_STEP_MS
      if (!isSet && performance.now() - measuredAtMs < MEASURE_MS) continue
      await measure().catch(error => log.debug({ err: error }, 'could not measure the clock of the database'))
    }
  }

  return {
    now: () => (offsetMs === undefined ? new Date() : new Date(performance.now() + offsetMs)),
    measure,
    /** Measures the clock every 5 s until `stop` is called. Also measures it when the clock of the machine is set. */
    start(): void {
      // The loop ends when `stop` aborts the delay.
      run().catch(() => {})
    },
    stop: async () => stopping.abort(),
    /** Returns whether the clock of the machine differs from that of the database by more than 5 s. */
    isWrong: () => Math.abs(findDifference()) > MAX_DIFFERENCE_MS,
  }
}

/** Returns the current time of the database, for a command. */
export async function readDatabaseTime(sql: Query): Promise<Date> {
  const [row] = await sql<{ now: Date }>`select clock_timestamp() as now`
  return row!.now
}

/** Returns the difference between the clock of the machine and the monotonic clock. */
function findMachineOffset(): number {
  return Date.now() - performance.now()
}

/** Measures the difference between the clock of the database and the monotonic clock. */
async function measureBest(sql: Query): Promise<Measurement> {
  let best = await measureOnce(sql)
  for (let tries = 1; tries < MAX_TRIES && best.roundTripMs > GOOD_ROUND_TRIP_MS; tries += 1) {
    const next = await measureOnce(sql)
    if (next.roundTripMs < best.roundTripMs) best = next
  }
  return best
}

type Measurement = { databaseOffsetMs: number; roundTripMs: number }

async function measureOnce(sql: Query): Promise<Measurement> {
  const sentAtMs = performance.now()
  const [row] = await sql<{ ms: number }>`select extract(epoch from clock_timestamp())::float8 * 1000 as ms`
  const roundTripMs = performance.now() - sentAtMs
  return { databaseOffsetMs: row!.ms - sentAtMs - roundTripMs / 2, roundTripMs }
}

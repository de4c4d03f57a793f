// npm --prefix bench run driver [-- --rounds 8 --seconds 3] compares our driver layer with the package `postgres`. Our
// layer is src/db, which uses `pg`. A contender is one of the two layers, with its connections. Each contender runs
// statements of the service on two connections, as the service does for requests that only read. In a round, each
// contender runs once. Other programs may slow down the machine for some time. Such a slowdown affects all runs of a
// round, so each figure is the ratio between two runs of the same round.
import assert from 'node:assert/strict'
import { parseArgs } from 'node:util'
import postgres from 'postgres'
import { PLANNER_OPTIONS } from '../src/db/connection-config.ts'
import { connectReads, type Query } from '../src/db/sql.ts'
import { prepareStatement } from '../src/db/statement.ts'
import * as notifications from '../src/notifications/notifications.ts'
import { median } from './measure.ts'
import { startPostgres } from './postgres.ts'
import { seedService } from './seed.ts'

type Statement = (sql: Query, userId: number) => Promise<unknown>
type Contender = { name: string; sql: Query; close(): Promise<unknown> }
type Run = { perSecond: number; cpuMicros: number }

const IN_FLIGHT = 64
const WARM_UP_SECONDS = 2
const SEED = { users: 5_000, notifications: 250_000 }

const STATEMENTS: Record<string, Statement> = {
  'unread count': notifications.countUnread,
  'page of 20': (sql, userId) => notifications.list(sql, userId, { page: 1, perPage: 20 }),
}

const templates = new Map<string, TemplateStringsArray>()

const { values: options } = parseArgs({
  options: { rounds: { type: 'string', default: '8' }, seconds: { type: 'string', default: '3' } },
})
const server = await startPostgres()
try {
  const url = await server.createMigrated('driver')
  await seedService(url, SEED)
  const reads = connectReads(url, { connections: 2 })
  const ours = { name: 'ours', sql: reads, close: () => reads.close() }
  // If both connections are busy, the pool of `postgres` searches a list that grows with each statement. Two pools with
  // one connection each do not have this problem, so we measure two such pools too.
  const theirs = [connectPostgres('one pool of two', url, [2]), connectPostgres('two pools of one', url, [1, 1])]
  console.log('postgres relative to our driver layer (= 1): median (minimum to maximum)')
  for (const [name, statement] of Object.entries(STATEMENTS)) {
    const runs = await runByTurns(statement, [ours, ...theirs])
    for (const other of theirs) {
      const ratios = (figure: keyof Run) => runs.map(round => round.get(other)![figure] / round.get(ours)![figure])
      const [throughput, cpu] = [show(ratios('perSecond')), show(ratios('cpuMicros'))]
      console.log(`${name}, ${other.name}: throughput ${throughput}, CPU per statement ${cpu}`)
    }
  }
  for (const { close } of [ours, ...theirs]) await close()
} finally {
  await server.stop()
}

/**
 * Connects the package `postgres` with the same settings as `connectReads`. This contender has a slight
 * advantage, because its parser of int8 values checks no ranges. Our parser checks the range of each number.
 * @param sizes the number of connections of each pool. The pools run the statements in turn.
 */
function connectPostgres(name: string, url: string, sizes: number[]): Contender {
  const pools = sizes.map(max =>
    postgres(url, {
      max,
      types: { int8: { to: 20, from: [20], serialize: String, parse: Number } },
      connection: { options: PLANNER_OPTIONS, TimeZone: 'UTC', statement_timeout: 30_000 },
    }),
  )
  let turn = 0
  const sql = (strings: TemplateStringsArray, ...values: unknown[]) => {
    const { text, values: bound } = prepareStatement(strings, values)
    return pools[turn++ % pools.length]!(toTemplate(text), ...(bound as any[]))
  }
  return { name, sql: sql as unknown as Query, close: () => Promise.all(pools.map(pool => pool.end())) }
}

/** Turns the SQL of a statement into a template for `postgres`, which cannot read our fragments. */
function toTemplate(text: string): TemplateStringsArray {
  const known = templates.get(text)
  if (known) return known
  const strings = text.split(/\$\d+/)
  const template = Object.assign(strings, { raw: strings })
  templates.set(text, template)
  return template
}

/**
 * Runs each contender once per round, and reverses the order of the contenders in every second round.
 * @returns the runs of each round
 */
async function runByTurns(statement: Statement, contenders: Contender[]): Promise<Map<Contender, Run>[]> {
  const expected = await statement(contenders[0]!.sql, 1)
  for (const { sql } of contenders) {
    assert.deepEqual(await statement(sql, 1), expected)
    await run(statement, sql, WARM_UP_SECONDS)
  }
  const rounds: Map<Contender, Run>[] = []
  for (let round = 0; round < Number(options.rounds); round += 1) {
    const runs = new Map<Contender, Run>()
    for (const contender of round % 2 === 0 ? contenders : contenders.toReversed()) {
      runs.set(contender, await run(statement, contender.sql, Number(options.seconds)))
    }
    rounds.push(runs)
  }
  return rounds
}

/**
 * Keeps `IN_FLIGHT` statements in flight, each for a random user. The result includes the CPU time of this process, but
 * not the CPU time of PostgreSQL.
 */
async function run(statement: Statement, sql: Query, seconds: number): Promise<Run> {
  const began = performance.now()
  const cpu = process.cpuUsage()
  const until = began + seconds * 1000
  let count = 0
  const work = async () => {
    while (performance.now() < until) {
      await statement(sql, 1 + Math.floor(Math.random() * SEED.users))
      count += 1
    }
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, work))
  const { user, system } = process.cpuUsage(cpu)
  return { perSecond: count / ((performance.now() - began) / 1000), cpuMicros: (user + system) / count }
}

function show(ratios: number[]): string {
  return `${median(ratios).toFixed(2)} × (${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)})`
}

import assert from 'node:assert/strict'
import { type Bench, type Contender, compare } from '../measure.ts'
import { administer } from '../postgres.ts'
import { type Program, startProgram, startService } from '../programs.ts'
import { formatRatio, goalRow, missingRow, type Part } from '../report.ts'
import { del, post, randomClientHeader } from '../requests.ts'
import { callers, createCeilingTables, seedService } from '../seed.ts'
import type { Server } from '../servers.ts'

const SEED = { users: 1_000, notifications: 600_000, unread: true }
const SMOKE_SEED = { ...SEED, users: 100, notifications: 5_000 }
const CONNECTIONS = [5, 16]
const GOAL = { min: 0.8 }

/**
 * Measures the requests that write a row, compared with the ceiling, on each server. Both have the same number of
 * connections for writes.
 */
export async function writes(bench: Bench): Promise<Part> {
  const { all, missing } = await bench.servers()
  const part: Part = { rows: [], comparisons: [] }
  for (const server of all) await measureServer(bench, server, part)
  if (missing !== undefined) {
    for (const { work } of workloads(SMOKE_SEED))
      part.rows.push(missingRow(`${work}, a flush of 1.5 ms`, GOAL, missing))
  }
  return part
}

async function measureServer(bench: Bench, { name: server, postgres }: Server, part: Part): Promise<void> {
  const seed = bench.smoke ? SMOKE_SEED : SEED
  const url = await postgres.createMigrated('writes')
  await seedService(url, seed)
  await createCeilingTables(url)
  const programs = await Promise.all(
    CONNECTIONS.flatMap(count => [
      startService(url, { WRITE_CONNECTIONS: String(count) }),
      startProgram('ceiling', url, { WRITE_CONNECTIONS: String(count) }),
    ]),
  )
  const emptying = emptyOutbox(url)
  try {
    for (const { work, next, check } of workloads(seed)) {
      if (bench.just !== undefined && bench.just !== work) continue
      const title = `${work}, ${server}`
      const figures = await compare(
        { ...bench, postgres },
        programs.map((program, index): Contender => {
          const connections = `${CONNECTIONS[Math.floor(index / 2)]} connections`
          return { name: `${program.name}, ${connections}`, programs: [program], next, check }
        }),
      )
      part.comparisons!.push({ work: title, figures })
      for (const [index, count] of CONNECTIONS.entries()) {
        const [own, ceiling] = [figures[2 * index]!, figures[2 * index + 1]!]
        const row = `${title}, ${count} connections: throughput relative to the ceiling`
        part.rows.push(goalRow(row, own.perSecond / ceiling.perSecond, GOAL, formatRatio))
      }
    }
  } finally {
    await emptying.stop()
    await Promise.all(programs.map((program: Program) => program.stop()))
  }
}

/** Each notification is marked at most once, and deleted at most once, so each request writes. */
function workloads({ users, notifications }: typeof SEED) {
  const people = callers(users)
  const nextOf = (request: (path: string, token: string) => string) => {
    let id = 0
    return () => {
      id = (id % notifications) + 1
      return request(`/api/v1/notifications/${id}`, people[(id - 1) % users]!.token)
    }
  }
  let person = 0
  return [
    {
      work: 'read',
      next: nextOf((path, token) => post(`${path}/read`, undefined, token)),
      check: ({ data }: any) => assert.equal(data.is_read, true),
    },
    {
      work: 'delete',
      next: nextOf(del),
      check: ({ message }: any) => assert.match(message, /supprimée/),
    },
    {
      work: 'request-otp',
      next: () => {
        person += 1
        const body = {
          email: `writer${person}@example.com`,
          first_name: 'Marie',
          last_name: 'Durand',
          accept_cgu: true,
        }
        return post('/api/v1/auth/request-otp', body, undefined, randomClientHeader())
      },
      check: ({ message }: any) => assert.match(message, /code/),
    },
  ]
}

/**
 * Empties the outbox of the service every second, because no worker runs. Otherwise the service would soon refuse
 * requests for a code, because their mails would wait too long.
 */
export function emptyOutbox(url: string): { stop(): Promise<void> } {
  let running: Promise<unknown> = Promise.resolve()
  const timer = setInterval(() => {
    // A worker deletes rows too. `truncate` would make PostgreSQL plan all statements on the table again.
    running = administer(url, 'delete from outbox')
  }, 1_000)
  return {
    async stop() {
      clearInterval(timer)
      await running
    },
  }
}

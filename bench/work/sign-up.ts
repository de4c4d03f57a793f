import assert from 'node:assert/strict'
import { deriveKeys } from '../../src/keys.ts'
import type { Answer } from '../connection.ts'
import { load } from '../load.ts'
import { type Bench, CONNECTIONS, type Figures, parseBody, median, quantile } from '../measure.ts'
import { administer } from '../postgres.ts'
import { JWT_SECRET, type Program, startProgram, startService } from '../programs.ts'
import { type Part, formatRatio, goalRow } from '../report.ts'
import { post, randomClientHeader } from '../requests.ts'
import { seedService } from '../seed.ts'

/** How one signs up somewhere. */
type SignUpApi = {
  program: Program
  ask: (email: string) => string
  /** The codes that were "mailed" since the last look, by address. */
  mailed: () => Promise<Map<string, string>>
  trade: (email: string, code: string) => string
  /** @throws when the answer doesn't say that a new account was made */
  check: (body: any) => void
}

/** From an address to a token: two exchanges, the mail discarded. All ask first, then all trade: reading the codes is no part. */
export async function signUp(bench: Bench): Promise<Part> {
  const url = await bench.postgres.createMigrated('sign_up')
  await seedService(url, { users: 100, notifications: 100 })
  const peerUrl = await bench.postgres.createDatabase('better_auth')
  const programs = await Promise.all([
    startService(url),
    startProgram('ceiling', url),
    startProgram('better-auth', peerUrl),
  ] as const)
  const ways = [courtsideSignUp(programs[0], url), courtsideSignUp(programs[1], url), betterAuthSignUp(programs[2])]
  try {
    const runs = new Map<string, Run[]>(programs.map(({ name }) => [name, []]))
    const count = bench.smoke ? 20 : Math.round(300 * bench.seconds)
    // The first round warms up.
    for (let round = 0; round <= (bench.smoke ? 0 : bench.rounds); round += 1) {
      for (const way of ways) {
        const run = await runRound(bench, way, count)
        if (round > 0) runs.get(way.program.name)!.push(run)
      }
    }
    if (bench.smoke) return { rows: [] }
    const of = [...runs].map(([name, of]) => figures(name, of))
    const [own, ceiling, peer] = of as [Figures, Figures, Figures]
    return {
      rows: [
        goalRow('sign-up, of the throughput of better-auth', own.perSecond / peer.perSecond, { least: 5 }, formatRatio),
        goalRow("sign-up, of the ceiling's throughput", own.perSecond / ceiling.perSecond, { least: 0.5 }, formatRatio),
      ],
      figures: [{ work: 'sign-up (two exchanges)', of }],
    }
  } finally {
    await Promise.all(programs.map(program => program.stop()))
  }
}

type Run = { perSecond: number; latencies: number[]; cpu: number; databaseCpu: number; busy: number }

let lastPerson = 0

async function runRound(bench: Bench, { program, ask, mailed, trade, check }: SignUpApi, count: number): Promise<Run> {
  const emails = Array.from({ length: count }, () => {
    lastPerson += 1
    return `person${lastPerson}@example.com`
  })
  const asked = await measureExchange(bench, program, emails.map(ask), () => {})
  const codes = await mailed()
  assert.equal(codes.size, count)
  const traded = await measureExchange(
    bench,
    program,
    emails.map(email => trade(email, codes.get(email)!)),
    answer => check(parseBody(answer)),
  )
  const sum = (of: (one: typeof asked) => number) => of(asked) + of(traded)
  return {
    perSecond: count / sum(one => one.seconds),
    latencies: [...asked.latencies, ...traded.latencies],
    cpu: (sum(one => one.cpu) / count) * 1e6,
    databaseCpu: (sum(one => one.databaseCpu) / count) * 1e6,
    busy: Math.max(asked.busy, traded.busy),
  }
}

async function measureExchange(bench: Bench, program: Program, requests: string[], check: (answer: Answer) => void) {
  const [cpu, databaseCpu] = [await program.cpuSeconds(), await bench.postgres.cpuSeconds()]
  const next = () => requests.pop()!
  const options = { ports: [program.port], connections: CONNECTIONS, count: requests.length, next, check }
  const { perSecond, latencies, busy } = await load(options)
  return {
    seconds: latencies.length / perSecond,
    latencies,
    busy,
    cpu: (await program.cpuSeconds()) - cpu,
    databaseCpu: (await bench.postgres.cpuSeconds()) - databaseCpu,
  }
}

function figures(name: string, runs: Run[]): Figures {
  const of = (value: (run: Run) => number) => median(runs.map(value))
  return {
    name,
    perSecond: of(run => run.perSecond),
    cpu: of(run => run.cpu),
    databaseCpu: of(run => run.databaseCpu),
    p50: of(run => quantile(run.latencies, 0.5)),
    p99: of(run => quantile(run.latencies, 0.99)),
    busy: Math.max(...runs.map(run => run.busy)),
  }
}

/** The service's and the ceiling's: one wire, one database. */
function courtsideSignUp(program: Program, url: string): SignUpApi {
  const keys = deriveKeys([JWT_SECRET])
  return {
    program,
    ask: email => {
      const body = { email, first_name: 'Marie', last_name: 'Durand', accept_cgu: true }
      return post('/api/v1/auth/request-otp', body, undefined, randomClientHeader())
    },
    async mailed() {
      // What would be mailed lies sealed in the queue; nobody works there, so that it is taken out here.
      const rows = await administer(
        url,
        `with taken as (delete from graphile_worker._private_jobs returning payload)
        select email, payload from taken join sign_in_code on sign_in_code.id = (payload->>'code_id')::uuid`,
      )
      return new Map(rows.map(({ email, payload }) => [email, keys.open(payload.code_id, payload.sealed)!]))
    },
    trade: (email, code) => post('/api/v1/auth/verify-otp', { email, code }, undefined, randomClientHeader()),
    check: body => {
      assert.equal(body.is_new_user, true)
      assert.match(body.access_token, /^ey/)
    },
  }
}

function betterAuthSignUp(program: Program): SignUpApi {
  return {
    program,
    ask: email =>
      post('/api/auth/email-otp/send-verification-otp', { email, type: 'sign-in' }, undefined, randomClientHeader()),
    async mailed() {
      const answer = await fetch(`http://127.0.0.1:${program.port}/mailed`)
      return new Map(Object.entries((await answer.json()) as Record<string, string>))
    },
    trade: (email, otp) =>
      post('/api/auth/sign-in/email-otp', { email, otp, name: 'Marie Durand' }, undefined, randomClientHeader()),
    check: body => {
      assert.equal(body.user.name, 'Marie Durand')
      assert.ok(body.token)
    },
  }
}

import assert from 'node:assert/strict'
import { deriveKeys } from '../../src/keys.ts'
import type { Answer } from '../connection.ts'
import { load } from '../load.ts'
import { type Bench, CONNECTIONS, type Figures, median, parseBody, quantile } from '../measure.ts'
import { administer } from '../postgres.ts'
import { JWT_SECRET, type Program, startProgram, startService } from '../programs.ts'
import { formatRatio, goalRow, type Part } from '../report.ts'
import { post, randomClientHeader } from '../requests.ts'
import { seedService } from '../seed.ts'

/** The requests that sign a user up with one of the measured programs. */
type SignUpApi = {
  program: Program
  requestCode: (email: string) => string
  /** Returns the codes that the program has made since the last call. The keys of the map are e-mail addresses. */
  takeCodes: () => Promise<Map<string, string>>
  verifyCode: (email: string, code: string) => string
  /** Checks the answer to the second request. @throws AssertionError if the answer does not contain a new account */
  check: (body: any) => void
}

/**
 * Measures the two requests of a sign-up, without the delivery of the mail. All users request their codes before the
 * first user sends a code. The bench reads the codes between these two phases, so the time for reading them does not
 * count.
 */
export async function signUp(bench: Bench): Promise<Part> {
  const url = await bench.postgres.createMigrated('sign_up')
  await seedService(url, { users: 100, notifications: 100 })
  const peerUrl = await bench.postgres.createDatabase('better_auth')
  const programs = await Promise.all([
    startService(url),
    startProgram('ceiling', url),
    startProgram('better-auth', peerUrl),
  ] as const)
  const apis = [courtsideSignUp(programs[0], url), courtsideSignUp(programs[1], url), betterAuthSignUp(programs[2])]
  try {
    const runs = new Map<string, Run[]>(programs.map(({ name }) => [name, []]))
    const count = bench.smoke ? 20 : Math.round(300 * bench.seconds)
    // The first round is the warm-up.
    for (let round = 0; round <= (bench.smoke ? 0 : bench.rounds); round += 1) {
      for (const api of apis) {
        const run = await runRound(bench, api, count)
        if (round > 0) runs.get(api.program.name)!.push(run)
      }
    }
    if (bench.smoke) return { rows: [] }
    const figures = [...runs].map(([name, runs]) => summarize(name, runs))
    const [own, ceiling, peer] = figures as [Figures, Figures, Figures]
    return {
      rows: [
        goalRow('sign-up: throughput relative to better-auth', own.perSecond / peer.perSecond, { min: 5 }, formatRatio),
        goalRow(
          'sign-up: throughput relative to the ceiling',
          own.perSecond / ceiling.perSecond,
          { min: 0.5 },
          formatRatio,
        ),
      ],
      comparisons: [{ work: 'sign-up (two requests)', figures }],
    }
  } finally {
    await Promise.all(programs.map(program => program.stop()))
  }
}

type Run = { perSecond: number; latencies: number[]; cpu: number; databaseCpu: number; busy: number }

let lastPerson = 0

async function runRound(
  bench: Bench,
  { program, requestCode, takeCodes, verifyCode, check }: SignUpApi,
  count: number,
): Promise<Run> {
  const emails = Array.from({ length: count }, () => {
    lastPerson += 1
    return `person${lastPerson}@example.com`
  })
  const requested = await measureRequests(bench, program, emails.map(requestCode), () => {})
  const codes = await takeCodes()
  assert.equal(codes.size, count)
  const verified = await measureRequests(
    bench,
    program,
    emails.map(email => verifyCode(email, codes.get(email)!)),
    answer => check(parseBody(answer)),
  )
  const sum = (read: (phase: typeof requested) => number) => read(requested) + read(verified)
  return {
    perSecond: count / sum(phase => phase.seconds),
    latencies: [...requested.latencies, ...verified.latencies],
    cpu: (sum(phase => phase.cpu) / count) * 1e6,
    databaseCpu: (sum(phase => phase.databaseCpu) / count) * 1e6,
    busy: Math.max(requested.busy, verified.busy),
  }
}

async function measureRequests(bench: Bench, program: Program, requests: string[], check: (answer: Answer) => void) {
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

function summarize(name: string, runs: Run[]): Figures {
  const medianBy = (value: (run: Run) => number) => median(runs.map(value))
  return {
    name,
    perSecond: medianBy(run => run.perSecond),
    cpu: medianBy(run => run.cpu),
    databaseCpu: medianBy(run => run.databaseCpu),
    p50: medianBy(run => quantile(run.latencies, 0.5)),
    p99: medianBy(run => quantile(run.latencies, 0.99)),
    busy: Math.max(...runs.map(run => run.busy)),
  }
}

/**
 * Returns the requests for the service or for the ceiling, the minimal server in `programs/ceiling.ts`. Both have the
 * same routes and the same database.
 */
function courtsideSignUp(program: Program, url: string): SignUpApi {
  const keys = deriveKeys([JWT_SECRET])
  return {
    program,
    requestCode: email => {
      const body = { email, first_name: 'Marie', last_name: 'Durand', accept_cgu: true }
      return post('/api/v1/auth/request-otp', body, undefined, randomClientHeader())
    },
    async takeCodes() {
      // This statement deletes the rows of the outbox, because no worker runs and removes them.
      const rows = await administer(
        url,
        `with taken as (delete from outbox returning code_id)
        select email, id, sealed from taken join sign_in_code on sign_in_code.id = code_id`,
      )
      return new Map(rows.map(({ email, id, sealed }) => [email, keys.open(id, sealed)!]))
    },
    verifyCode: (email, code) => post('/api/v1/auth/verify-otp', { email, code }, undefined, randomClientHeader()),
    check: body => {
      assert.equal(body.is_new_user, true)
      assert.match(body.access_token, /^ey/)
    },
  }
}

function betterAuthSignUp(program: Program): SignUpApi {
  return {
    program,
    requestCode: email =>
      post('/api/auth/email-otp/send-verification-otp', { email, type: 'sign-in' }, undefined, randomClientHeader()),
    async takeCodes() {
      const answer = await fetch(`http://127.0.0.1:${program.port}/mailed`)
      return new Map(Object.entries((await answer.json()) as Record<string, string>))
    },
    verifyCode: (email, otp) =>
      post('/api/auth/sign-in/email-otp', { email, otp, name: 'Marie Durand' }, undefined, randomClientHeader()),
    check: body => {
      assert.equal(body.user.name, 'Marie Durand')
      assert.ok(body.token)
    },
  }
}

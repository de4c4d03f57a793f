import { type Bench, CONNECTIONS, type Figures, median, quantile } from '../measure.ts'
import { type Program, startProgram, startService } from '../programs.ts'
import { type Comparison, formatRatio, goalRow, type Part, type Row } from '../report.ts'
import { createCeilingTables, seedService } from '../seed.ts'
import type { Server } from '../servers.ts'
import { betterAuthApi, ceilingApi, courtsideApi, type SignUpApi } from '../sign-up-apis.ts'
import { type Crowd, signUpByMail, signUpWithoutMail } from '../sign-ups.ts'
import { type SmtpSink, startSmtpSink } from '../smtp-sink.ts'
import { emptyOutbox } from './writes.ts'

/**
 * How many people sign up at the same time. The bench finds the best number of each program on the first server, and
 * uses it on all servers.
 */
const CROWDS = [256, 512, 1_024]

/** A sign-up by mail takes up to some seconds, so its measurement takes longer than that of a request. */
const MAIL_SECONDS = 5
const MAIL_ROUNDS = 3

type Contender = { name: string; programs: Program[]; api: SignUpApi }

/** For each program, the number of people with which it completed the most sign-ups a second. */
type BestCrowds = Map<string, number>

/**
 * Measures sign-ups on each server. Every program sends its mails to the same mail server. On the server with the disk
 * of this machine, also measures sign-ups without mails. The service runs as one web process and one worker, and
 * better-auth as two processes.
 */
export async function signUp(bench: Bench): Promise<Part> {
  const { all } = await bench.servers()
  const sink = await startSmtpSink()
  const part: Part = { rows: [], comparisons: [] }
  const best: BestCrowds = new Map()
  try {
    for (const [index, server] of (bench.smoke ? all.slice(0, 1) : all).entries()) {
      part.comparisons!.push(await measureServer(bench, server, sink, best))
      if (index > 0) continue
      part.rows.push(...compareWithGoals(part.comparisons![0]!))
      part.comparisons!.push(await measureServer(bench, server, undefined, new Map()))
    }
    return bench.smoke ? { rows: [] } : part
  } finally {
    sink.close()
  }
}

async function measureServer(
  bench: Bench,
  { name, postgres }: Server,
  sink: SmtpSink | undefined,
  best: BestCrowds,
): Promise<Comparison> {
  const url = await postgres.createMigrated('sign_up')
  await seedService(url, { users: 100, notifications: 100 })
  await createCeilingTables(url)
  const peerUrl = await postgres.createDatabase('better_auth')
  const contenders = await startContenders(url, peerUrl, sink?.url)
  const emptying = sink ? undefined : emptyOutbox(url)
  try {
    const figures = await measureContenders({ ...bench, postgres }, contenders, sink, best)
    return { work: `sign-up ${sink ? 'by mail' : 'without mail'}, ${name}`, figures }
  } finally {
    await emptying?.stop()
    await Promise.all(contenders.flatMap(({ programs }) => programs).map(program => program.stop()))
  }
}

function compareWithGoals({ work, figures }: Comparison): Row[] {
  const [own, ceiling, peer] = figures as [Figures, Figures, Figures]
  return [
    goalRow(`${work}: relative to the ceiling`, own.perSecond / ceiling.perSecond, { min: 0.5 }, formatRatio),
    goalRow(`${work}: relative to better-auth`, own.perSecond / peer.perSecond, { min: 3 }, formatRatio),
  ]
}

async function startContenders(url: string, peerUrl: string, smtpUrl: string | undefined): Promise<Contender[]> {
  const mail: Record<string, string> = smtpUrl === undefined ? {} : { SMTP_URL: smtpUrl }
  const web = await startService(url, mail)
  const worker =
    smtpUrl === undefined ? [] : [await startService(url, { ...mail, ROLE: 'worker', MAIL_CONCURRENCY: '64' })]
  const ceiling = await startProgram('ceiling', url, mail)
  // The first process creates the tables.
  const peers = [await startProgram('better-auth', peerUrl, mail), await startProgram('better-auth', peerUrl, mail)]
  return [
    { name: 'courtside', programs: [web, ...worker], api: courtsideApi(web, url) },
    { name: 'ceiling', programs: [ceiling], api: ceilingApi(ceiling) },
    { name: 'better-auth', programs: peers, api: betterAuthApi(peers) },
  ]
}

/** @param best if it has no entry for a program, this function measures all of `CROWDS` and adds the entry */
async function measureContenders(bench: Bench, contenders: Contender[], sink: SmtpSink | undefined, best: BestCrowds) {
  const measure = async ({ programs, api }: Contender, people: number, seconds: number) => {
    const crowd: Crowd = { api, people, seconds, ...(bench.smoke && { count: 20 }) }
    const cpu = async () =>
      (await Promise.all(programs.map(each => each.cpuSeconds()))).reduce((sum, each) => sum + each)
    const before = [await cpu(), await bench.postgres.cpuSeconds()] as const
    const result = sink ? await signUpByMail(crowd, sink) : await signUpWithoutMail(crowd)
    const perSignUp = (seconds: number) => (seconds / result.signUps) * 1e6
    return {
      ...result,
      cpu: perSignUp((await cpu()) - before[0]),
      databaseCpu: perSignUp((await bench.postgres.cpuSeconds()) - before[1]),
    }
  }
  if (bench.smoke) {
    for (const contender of contenders) await measure(contender, 4, 1)
    return contenders.map(({ name }) => ({ name, perSecond: 0, cpu: 0, databaseCpu: 0, p50: 0, p99: 0, busy: 0 }))
  }
  const seconds = sink ? Math.max(MAIL_SECONDS, bench.seconds) : bench.seconds
  const rounds = sink ? Math.min(MAIL_ROUNDS, bench.rounds) : bench.rounds
  for (const contender of contenders) {
    await measure(contender, CONNECTIONS, bench.seconds)
    if (best.has(contender.name)) continue
    const rates = []
    for (const people of CROWDS) rates.push((await measure(contender, people, seconds)).perSecond)
    best.set(contender.name, CROWDS[rates.indexOf(Math.max(...rates))]!)
  }
  const runs = new Map(contenders.map(({ name }) => [name, [] as Awaited<ReturnType<typeof measure>>[]]))
  for (let round = 0; round < rounds; round += 1) {
    for (const contender of contenders) {
      runs.get(contender.name)!.push(await measure(contender, best.get(contender.name)!, seconds))
    }
  }
  return [...runs].map(([name, each]): Figures => {
    const medianBy = (value: (run: (typeof each)[number]) => number) => median(each.map(value))
    return {
      name,
      perSecond: medianBy(run => run.perSecond),
      cpu: medianBy(run => run.cpu),
      databaseCpu: medianBy(run => run.databaseCpu),
      p50: medianBy(run => quantile(run.latencies, 0.5)),
      p99: medianBy(run => quantile(run.latencies, 0.99)),
      busy: Math.max(...each.map(run => run.busy)),
    }
  })
}

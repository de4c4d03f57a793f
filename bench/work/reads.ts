import assert from 'node:assert/strict'
import { Connection } from '../connection.ts'
import { type Bench, type Contender, compare, type Figures } from '../measure.ts'
import { type Program, startProgram, startService } from '../programs.ts'
import { formatRatio, goalRow, type Part } from '../report.ts'
import { get, pickRandom, post } from '../requests.ts'
import { type Caller, callers, pickNotificationId, seedInbox, seedService } from '../seed.ts'

const SEED = { users: 5_000, notifications: 250_000 }
const SMOKE_SEED = { users: 100, notifications: 5_000 }

/**
 * Measures the most frequent requests of an app. Compares the service with the ceiling, the minimal server in
 * `programs/ceiling.ts`, and with Express and Prisma.
 */
export async function reads(bench: Bench): Promise<Part> {
  const seed = bench.smoke ? SMOKE_SEED : SEED
  const url = await bench.postgres.createMigrated('reads')
  await seedService(url, seed)
  const inboxUrl = await bench.postgres.createDatabase('inbox')
  await seedInbox(inboxUrl, seed)
  const programs = await Promise.all([
    startService(url),
    startProgram('ceiling', url),
    startProgram('express-prisma', inboxUrl),
    ...(bench.against ? [startService(url, {}, bench.against)] : []),
  ])
  // All programs get the same tokens, which are signed like the tokens of the service.
  const people = callers(bench.smoke ? 100 : 1_000)
  const part: Part = { rows: [], comparisons: [] }
  try {
    for (const { work, next, check } of workloads(people, seed)) {
      if (bench.just !== undefined && bench.just !== work) continue
      const contenders = programs.map((program, index): Contender => {
        return { name: index < 3 ? program.name : 'the other checkout', programs: [program], next, check }
      })
      // The part `writes` compares this write with the ceiling.
      const compared = work === 'read' ? contenders.toSpliced(1, 1) : contenders
      const figures = await compare(bench, compared, 'courtside')
      part.comparisons!.push({ work, figures })
      part.rows.push(...compareWithGoals(work, figures))
      if (bench.smoke && work !== 'read') await assertSameAnswers(next, programs)
    }
  } finally {
    await Promise.all(programs.map(program => program.stop()))
  }
  return part
}

function workloads(people: Caller[], seed: typeof SEED) {
  const perUser = seed.notifications / seed.users
  const counts = people.map(({ token }) => get('/api/v1/notifications/unread-count', token))
  const pages = people.map(({ token }) => get('/api/v1/notifications?page=1', token))
  return [
    {
      work: 'unread-count',
      next: () => pickRandom(counts),
      check: (body: any) => assert.deepEqual(body, { unread_count: Math.floor(perUser / 4) }),
    },
    {
      work: 'page 1',
      next: () => pickRandom(pages),
      check: ({ data, meta }: any) => {
        assert.equal(data.length, 20)
        assert.deepEqual([meta.total, meta.per_page, meta.current_page], [perUser, 20, 1])
      },
    },
    {
      work: 'read',
      next: () => {
        const { userId, token } = pickRandom(people)
        return post(`/api/v1/notifications/${pickNotificationId(userId, seed)}/read`, undefined, token)
      },
      check: ({ data }: any) => assert.equal(data.is_read, true),
    },
  ]
}

function compareWithGoals(work: string, figures: Figures[]) {
  const find = (name: string) => figures.find(each => each.name === name)
  const [own, ceiling, usual] = [find('courtside')!, find('ceiling'), find('express-prisma')!]
  const relative = (to: Figures) => own.perSecond / to.perSecond
  return [
    ...(ceiling
      ? [
          goalRow(`${work}: throughput relative to the ceiling`, relative(ceiling), { min: 0.85 }, formatRatio),
          goalRow(
            `${work}: p99 relative to the ceiling, at half load`,
            own.p99 / ceiling.p99,
            { max: 1.5 },
            formatRatio,
          ),
        ]
      : []),
    goalRow(`${work}: throughput relative to Express and Prisma`, relative(usual), { min: 8 }, formatRatio),
  ]
}

/** Checks that the service and the ceiling (`programs/ceiling.ts`) give the same answer to the same request. */
async function assertSameAnswers(next: () => string, [own, ceiling]: Program[]): Promise<void> {
  const request = next()
  const [one, other] = await Promise.all(
    [own!, ceiling!].map(async ({ port }) => {
      const connection = new Connection(port)
      const answer = await connection.send(request)
      connection.close()
      return answer.body.toString()
    }),
  )
  assert.equal(one, other)
}

// npm run bench [-- --only PART] [--just WORK] [--against CHECKOUT] [--rounds N] [--seconds N] [--data FOLDER]
//   [--write] [--smoke]
// PART is a key of `PARTS` below. Without `--smoke`, the part `growth` runs only with `--only growth`, because it
// creates ten million rows. The creation takes minutes and about 10 GB of disk space. The rows stay in FOLDER.
import { execFile } from 'node:child_process'
import { totalmem } from 'node:os'
import { parseArgs, promisify } from 'node:util'
import type { Bench } from './measure.ts'
import { startPostgres } from './postgres.ts'
import { markdown, type Part } from './report.ts'
import { type Servers, startServers } from './servers.ts'
import { announcements } from './work/announcements.ts'
import { generator } from './work/generator.ts'
import { growth } from './work/growth.ts'
import { intake } from './work/intake.ts'
import { oneUser } from './work/one-user.ts'
import { overload } from './work/overload.ts'
import { processes } from './work/processes.ts'
import { pushes } from './work/pushes.ts'
import { reads } from './work/reads.ts'
import { sessionCheck } from './work/session-check.ts'
import { signUp } from './work/sign-up.ts'
import { start } from './work/start.ts'
import { streams } from './work/streams.ts'
import { writes } from './work/writes.ts'
import { writeDocument } from './write.ts'

const PARTS: Record<string, (bench: Bench) => Promise<Part>> = {
  generator,
  reads,
  writes,
  'session-check': sessionCheck,
  'sign-up': signUp,
  intake,
  announcements,
  overload,
  pushes,
  'one-user': oneUser,
  start,
  processes,
  streams,
  growth,
}

const { values: options } = parseArgs({
  options: {
    only: { type: 'string' },
    just: { type: 'string' },
    against: { type: 'string' },
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '2' },
    smoke: { type: 'boolean', default: false },
    data: { type: 'string' },
    write: { type: 'boolean', default: false },
  },
})

if (options.write && options.only !== undefined && options.only !== 'growth')
  throw new Error('--write works only with all parts, or with --only growth')
// For a machine that runs only PostgreSQL, the manual of PostgreSQL recommends this value: a quarter of the memory.
const growthSettings = { shared_buffers: `${Math.round(totalmem() / 4 / 2 ** 20)}MB` }
const postgres = await startPostgres({
  folder: options.data,
  settings: options.only === 'growth' ? growthSettings : {},
})
let servers: Promise<Servers> | undefined
try {
  const bench: Bench = {
    postgres,
    servers: () => {
      servers ??= startServers(postgres)
      return servers
    },
    rounds: Number(options.rounds),
    seconds: Number(options.seconds),
    smoke: options.smoke,
    just: options.just,
    against: options.against,
  }
  const parts: Part[] = []
  const isWanted = (name: string) =>
    options.only === name || (options.only === undefined && (options.smoke || name !== 'growth'))
  const selected = Object.entries(PARTS).filter(([name]) => isWanted(name))
  if (selected.some(([name]) => name === 'reads')) await generatePrismaClient()
  // The smoke bench measures nothing, so it may run two parts at the same time.
  const next = selected.values()
  await Promise.all(
    Array.from({ length: options.smoke ? 2 : 1 }, async () => {
      for (const [name, measure] of next) {
        console.error(`${name} …`)
        parts.push(await measure(bench))
      }
    }),
  )
  if (options.write) {
    const place = options.only === 'growth' ? 'growth' : 'measured'
    await writeDocument(place, parts, `Each figure is the median of ${bench.rounds} runs of ${bench.seconds} s.`)
  }
  console.log(options.smoke ? 'The bench works, and all answers were correct.' : markdown(parts))
} finally {
  await (await servers?.catch(() => undefined))?.stop()
  await postgres.stop()
}

/**
 * Generates Prisma's client from the schema. Prisma requires the path of a schema engine but does not run the engine,
 * so the path of any program works.
 */
async function generatePrismaClient(): Promise<void> {
  const cli = new URL('./node_modules/prisma/build/index.js', import.meta.url).pathname
  const env = { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: process.execPath, CHECKPOINT_DISABLE: '1' }
  await promisify(execFile)(process.execPath, [cli, 'generate'], { cwd: import.meta.dirname, env })
}

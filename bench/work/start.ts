import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { load } from '../load.ts'
import { type Bench, CONNECTIONS, median } from '../measure.ts'
import { startEmbeddedService, startService } from '../programs.ts'
import { goalRow, type Part } from '../report.ts'
import { get, pickRandom } from '../requests.ts'
import { callers, seedService } from '../seed.ts'

/**
 * Measures how long the service takes to start with the embedded PostgreSQL. With an external PostgreSQL, the service
 * starts faster. Also measures the memory of a process with ROLE=all.
 */
export async function start(bench: Bench): Promise<Part> {
  const rounds = bench.smoke ? 1 : bench.rounds
  const first: number[] = []
  const again: number[] = []
  for (let round = 0; round < rounds; round += 1) {
    const folder = await mkdtemp(join(tmpdir(), 'courtside-bench-'))
    for (const times of bench.smoke ? [first] : [first, again]) {
      const service = await startEmbeddedService(folder)
      times.push(service.startSeconds)
      await service.stop()
    }
    await rm(folder, { recursive: true, force: true })
  }
  const memory = await memoryAfterLoad(bench)
  if (bench.smoke) return { rows: [] }
  const seconds = (value: number) => `${value.toFixed(2)} s`
  return {
    rows: [
      goalRow('startup with existing data', median(again), { max: 1 }, seconds),
      goalRow('startup with an empty data folder', median(first), { max: 3 }, seconds),
      goalRow('memory after load, one process', memory, { max: 160 }, value => `${Math.round(value)} MB`),
    ],
    notes: [
      [
        'The rows about the startup use the embedded PostgreSQL.',
        'The time starts with the process and ends when `/readyz` first answers with 200.',
      ].join(' '),
    ],
  }
}

async function memoryAfterLoad(bench: Bench): Promise<number> {
  const url = await bench.postgres.createMigrated('memory')
  const seed = { users: 1_000, notifications: bench.smoke ? 20_000 : 100_000 }
  await seedService(url, seed)
  const service = await startService(url, { ROLE: 'all' })
  try {
    const requests = callers(1_000).flatMap(({ token }) => [
      get('/api/v1/notifications?page=1', token),
      get('/api/v1/notifications/unread-count', token),
      get('/api/v1/auth/me', token),
    ])
    const seconds = bench.smoke ? 0.2 : bench.seconds * bench.rounds
    await load({ ports: [service.port], connections: CONNECTIONS, seconds, next: () => pickRandom(requests) })
    return await service.memory()
  } finally {
    await service.stop()
  }
}

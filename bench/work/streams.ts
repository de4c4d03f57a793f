import assert from 'node:assert/strict'
import { createConnection, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { Connection } from '../connection.ts'
import { type Bench, quantile } from '../measure.ts'
import { INTAKE_KEY, startService } from '../programs.ts'
import { formatNumber, goalRow, type Part } from '../report.ts'
import { get, post } from '../requests.ts'
import { callers, seedService } from '../seed.ts'

const STREAMS = 5_000
const EVENTS_PER_SECOND = 25

/**
 * Measures the memory of idle streams, and the time until a notification reaches the client. Each event has three
 * recipients. The measured time begins before the bench reports the event, so it includes the commit.
 */
export async function streams(bench: Bench): Promise<Part> {
  const count = bench.smoke ? 50 : STREAMS
  const events = bench.smoke ? 10 : Math.ceil(bench.rounds * bench.seconds * EVENTS_PER_SECOND)
  const url = await bench.postgres.createMigrated('streams')
  await seedService(url, { users: count, notifications: count })
  const service = await startService(url)
  const opened: Stream[] = []
  try {
    const people = callers(count)
    await warmUp(service.port, people)
    const memoryBefore = await service.memory()
    for (let first = 0; first < count; first += 100) {
      const some = people.slice(first, first + 100).map(({ token }) => openStream(service.port, token))
      await Promise.all(some.map(stream => stream.synced))
      opened.push(...some)
    }
    if (!bench.smoke) await delay(5_000)
    const addedMegabytes = (await service.memory()) - memoryBefore

    const reporter = new Connection(service.port)
    const reportedAt = new Map<number, number>()
    const latencies: number[] = []
    const onNotification = (gameId: number) => {
      if (reportedAt.has(gameId)) latencies.push(performance.now() - reportedAt.get(gameId)!)
    }
    for (const stream of opened) stream.onNotification = onNotification
    for (let index = 0; index < events; index += 1) {
      // The ids from 1 000 000 are higher than the ids of all seeded games.
      const gameId = 1_000_000 + index
      reportedAt.set(gameId, performance.now())
      const answer = await reporter.send(eventRequest(gameId, index, count))
      assert.equal(answer.status, 202, answer.body.toString())
      await delay(1000 / EVENTS_PER_SECOND)
    }
    for (const until = performance.now() + 5_000; latencies.length < events * 3 && performance.now() < until; )
      await delay(10)
    assert.equal(latencies.length, events * 3, 'each recipient must get one notification')
    reporter.close()
    const p99 = quantile(latencies, 0.99)
    return {
      rows: [
        goalRow(`${count} idle streams: additional memory, MB`, addedMegabytes, { max: 300 }),
        goalRow(`from the report to the client, with ${count} open streams: p99, ms`, p99, { max: 200 }),
      ],
      notes: [describeStreams(latencies, addedMegabytes / count)],
    }
  } finally {
    for (const stream of opened) stream.close()
    await service.stop()
  }
}

function describeStreams(latencies: number[], megabytes: number): string {
  const [p50, p99, max] = [quantile(latencies, 0.5), quantile(latencies, 0.99), Math.max(...latencies)].map(
    formatNumber,
  )
  return [
    `Streams: ${latencies.length} notifications arrived in a median time of ${p50} ms after the report of their event.`,
    `99 % of them arrived within ${p99} ms, and the slowest took ${max} ms.`,
    `Each stream took ${formatNumber(megabytes * 1000)} kB of memory.`,
  ].join(' ')
}

/** Sends requests, so V8 compiles the code of the service before the measurement. */
async function warmUp(port: number, people: { token: string }[]): Promise<void> {
  const connection = new Connection(port)
  for (let index = 0; index < 2_000; index += 1) {
    await connection.send(get('/api/v1/notifications/unread-count', people[index % people.length]!.token))
  }
  connection.close()
}

type Stream = { synced: Promise<void>; onNotification: (gameId: number) => void; close(): void }

function openStream(port: number, token: string): Stream {
  const socket: Socket = createConnection({ port, host: '127.0.0.1' })
  const { promise: synced, resolve, reject } = Promise.withResolvers<void>()
  const stream: Stream = { synced, onNotification: () => {}, close: () => socket.destroy() }
  socket.setEncoding('latin1')
  socket.on('error', reject)
  socket.on('data', (text: string) => {
    if (text.includes('event: sync')) resolve()
    for (const [, gameId] of text.matchAll(/"game_id":(\d+)/g)) stream.onNotification(Number(gameId))
  })
  socket.write(get('/api/v1/notifications/stream', token))
  return stream
}

/** Makes the request for an event: a player leaves a game of four. The three other players are the recipients. */
function eventRequest(gameId: number, index: number, users: number): string {
  const [creator, actor, ...others] = [0, 1, 2, 3].map(player => 1 + ((index * 4 + player) % users))
  return post(
    '/internal/v1/events',
    {
      specversion: '1.0',
      id: `stream-${gameId}`,
      source: '/bench',
      type: 'game_left',
      time: new Date().toISOString(),
      data: {
        game_id: gameId,
        creator_id: creator,
        player_ids: [creator, ...others],
        actor_id: actor,
        starts_at: '2040-01-01T18:00:00Z',
      },
    },
    INTAKE_KEY,
    { 'Content-Type': 'application/cloudevents+json' },
  )
}

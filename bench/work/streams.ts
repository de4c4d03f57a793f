import assert from 'node:assert/strict'
import { createConnection, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { Connection } from '../connection.ts'
import { type Bench, quantile } from '../measure.ts'
import { INTAKE_KEY, startService } from '../programs.ts'
import { formatNumber, type Part, goalRow } from '../report.ts'
import { get, post } from '../requests.ts'
import { callers, seedService } from '../seed.ts'

const STREAMS = 5_000
const EVENTS_PER_SECOND = 25

/**
 * What idle streams cost in memory, and how soon a notification is at its reader's. A fact is told to three people, and each
 * telling is timed from before the fact is reported: so its commit is in the figure, and more than that.
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
    const before = await service.memory()
    for (let first = 0; first < count; first += 100) {
      const some = people.slice(first, first + 100).map(({ token }) => openStream(service.port, token))
      await Promise.all(some.map(stream => stream.synced))
      opened.push(...some)
    }
    if (!bench.smoke) await delay(5_000)
    const more = (await service.memory()) - before

    const reporter = new Connection(service.port)
    const sent = new Map<number, number>()
    const took: number[] = []
    const hear = (gameId: number) => {
      if (sent.has(gameId)) took.push(performance.now() - sent.get(gameId)!)
    }
    for (const stream of opened) stream.hear = hear
    for (let index = 0; index < events; index += 1) {
      // Nobody knows these games yet.
      const gameId = 1_000_000 + index
      sent.set(gameId, performance.now())
      const answer = await reporter.send(eventRequest(gameId, index, count))
      assert.equal(answer.status, 202, answer.body.toString())
      await delay(1000 / EVENTS_PER_SECOND)
    }
    for (const until = performance.now() + 5_000; took.length < events * 3 && performance.now() < until; )
      await delay(10)
    assert.equal(took.length, events * 3, 'each is told once')
    reporter.close()
    const p99 = quantile(took, 0.99)
    return {
      rows: [
        goalRow(`${count} idle streams, megabytes more`, more, { most: 300 }),
        goalRow(`from report to reader beside ${count} streams, p99 ms`, p99, { most: 200 }),
      ],
      notes: [
        `Streams: ${took.length} notifications came ${formatNumber(quantile(took, 0.5))} ms after their fact was reported (median), 99 % of them within ${formatNumber(p99)} ms, the last after ${formatNumber(Math.max(...took))} ms. A stream took ${formatNumber((more / count) * 1000)} kB.`,
      ],
    }
  } finally {
    for (const stream of opened) stream.close()
    await service.stop()
  }
}

/** So that what is measured is the streams, and not code that is compiled meanwhile. */
async function warmUp(port: number, people: { token: string }[]): Promise<void> {
  const connection = new Connection(port)
  for (let index = 0; index < 2_000; index += 1) {
    await connection.send(get('/api/v1/notifications/unread-count', people[index % people.length]!.token))
  }
  connection.close()
}

type Stream = { synced: Promise<void>; hear: (gameId: number) => void; close(): void }

function openStream(port: number, token: string): Stream {
  const socket: Socket = createConnection({ port, host: '127.0.0.1' })
  const { promise: synced, resolve, reject } = Promise.withResolvers<void>()
  const stream: Stream = { synced, hear: () => {}, close: () => socket.destroy() }
  socket.setEncoding('latin1')
  socket.on('error', reject)
  socket.on('data', (text: string) => {
    if (text.includes('event: sync')) resolve()
    for (const [, gameId] of text.matchAll(/"game_id":(\d+)/g)) stream.hear(Number(gameId))
  })
  socket.write(get('/api/v1/notifications/stream', token))
  return stream
}

/** A player leaves a game of four: the three who stay are told. */
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

import { setTimeout as delay } from 'node:timers/promises'
import { makeEvent } from '../events.ts'
import { INTAKE_KEY } from '../programs.ts'
import type { Caller } from '../seed.ts'

/**
 * The writes that the service has acknowledged, and the times of the answers in milliseconds of `performance.now()`.
 */
export type Acknowledged = {
  events: string[]
  reads: Map<number, number>
  codes: string[]
  times: Record<string, number[]>
}

const USERS = 100

/**
 * Starts three clients that send requests without pause and record the acknowledged writes. The first client reports
 * events, the second marks notifications as read, and the third requests codes. Each client waits for an answer before
 * its next request, and does not repeat a failed request.
 * @returns a function that stops the clients
 */
export function startWriting(address: string, people: Caller[], acknowledged: Acknowledged): () => Promise<void> {
  const stopping = new AbortController()
  let turn = 0
  const clients = { events: reportEvent, reads: markRead, codes: requestCode }
  const running = Object.entries(clients).map(async ([name, act]) => {
    acknowledged.times[name] = []
    while (!stopping.signal.aborted) {
      const isAcknowledged = await act().catch(() => false)
      if (isAcknowledged) acknowledged.times[name]!.push(performance.now())
      else await delay(50)
    }
  })

  async function reportEvent(): Promise<boolean> {
    // `makeEvent` picks the recipients from the first 20 users. The stream belongs to user 1, who is
    // one of them, so it often receives a notification.
    const event = makeEvent(20)
    const answer = await send('/internal/v1/events', INTAKE_KEY, event)
    if (answer.status === 202) acknowledged.events.push(String(event.id))
    return answer.status === 202
  }

  async function markRead(): Promise<boolean> {
    turn += 1
    const { userId, token } = people[turn % people.length]!
    // The seed has 100 rounds. Each round has one notification for each user. The notifications of every fourth round
    // are unread.
    const id = userId + USERS * (3 + 4 * (Math.floor(turn / people.length) % 25))
    const answer = await send(`/api/v1/notifications/${id}/read`, token)
    if (answer.status === 200) acknowledged.reads.set(id, userId)
    return answer.status === 200
  }

  async function requestCode(): Promise<boolean> {
    turn += 1
    const email = `newcomer${turn}@example.com`
    const body = { email, first_name: 'Marie', last_name: 'Durand', accept_cgu: true }
    const answer = await send('/api/v1/auth/request-otp', undefined, body)
    if (answer.status === 200) acknowledged.codes.push(email)
    await delay(20)
    return answer.status === 200
  }

  async function send(path: string, token?: string, body?: unknown): Promise<Response> {
    const answer = await fetch(address + path, {
      method: 'POST',
      headers: {
        ...(token && { authorization: `Bearer ${token}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      // A real client stops waiting for an answer after some time, and so does this client.
      signal: AbortSignal.timeout(5_000),
    })
    await answer.arrayBuffer()
    return answer
  }

  return async () => {
    stopping.abort()
    await Promise.all(running)
  }
}

/**
 * Reads a user's stream. When the stream ends, opens a new stream.
 * @returns the arrival times of the notifications, and a function that closes the stream
 */
export function startListening(address: string, { token }: Caller) {
  const stopping = new AbortController()
  const receivedAt: number[] = []
  const running = (async () => {
    while (!stopping.signal.aborted) {
      await readStream().catch(() => {})
      await delay(100)
    }
  })()

  async function readStream(): Promise<void> {
    const headers = { authorization: `Bearer ${token}` }
    const answer = await fetch(`${address}/api/v1/notifications/stream`, { headers, signal: stopping.signal })
    for await (const text of answer.body!.pipeThrough(new TextDecoderStream())) {
      if (text.includes('event: notification')) receivedAt.push(performance.now())
    }
  }

  return {
    receivedAt,
    async stop() {
      stopping.abort()
      await running
    },
  }
}

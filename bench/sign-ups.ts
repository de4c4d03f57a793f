import { setTimeout as delay } from 'node:timers/promises'
import { type Answer, Connection } from './connection.ts'
import { type LoadResult, load } from './load.ts'
import { parseBody } from './measure.ts'
import type { SignUpApi } from './sign-up-apis.ts'
import type { SmtpSink } from './smtp-sink.ts'

/** People who sign up one account after another. */
export type Crowd = {
  api: SignUpApi
  /** How many people sign up at the same time. */
  people: number
  seconds: number
  /** The number of sign-ups, in the smoke bench. */
  count?: number
}

/**
 * `latencies` are those of the requests, without the time until the mail arrives. `signUps` counts all sign-ups, also
 * those before `perSecond` was measured.
 */
export type SignUpResult = Pick<LoadResult, 'perSecond' | 'latencies' | 'busy'> & { signUps: number }

/** The time before the measurement of sign-ups by mail. In this time, the first people finish their sign-ups. */
const WARM_UP_SECONDS = 5

let lastPerson = 0

function newEmail(): string {
  lastPerson += 1
  return `person${lastPerson}@example.com`
}

/** Each person requests a code, waits for the mail, and sends the code. */
export async function signUpByMail({ api, people, seconds, count }: Crowd, sink: SmtpSink): Promise<SignUpResult> {
  const latencies: number[] = []
  const used = process.cpuUsage()
  const startedAt = performance.now()
  const measuredFrom = startedAt + WARM_UP_SECONDS * 1000
  const endsAt = measuredFrom + seconds * 1000
  let signUps = 0
  let measured = 0
  const isOver = () => (count === undefined ? performance.now() >= endsAt : signUps >= count)
  const exchange = async (connection: Connection, request: string): Promise<Answer> => {
    for (;;) {
      const sentAt = performance.now()
      const answer = await connection.send(request)
      if (answer.retryAfter !== undefined) await delay(answer.retryAfter * 1000)
      else {
        if (answer.status !== 200) throw new Error(`answered ${answer.status}: ${answer.body}`)
        latencies.push(performance.now() - sentAt)
        return answer
      }
    }
  }
  const pool = Array.from({ length: people }, (_, index) => new Connection(api.ports[index % api.ports.length]!))
  let elapsed = 0
  try {
    await Promise.all(
      pool.map(async connection => {
        while (!isOver()) {
          const email = newEmail()
          const mailed = sink.waitForCode(email)
          await exchange(connection, api.requestCode(email))
          const answer = await exchange(connection, api.verifyCode(email, await mailed))
          api.check(parseBody(answer))
          const finishedAt = performance.now()
          signUps += 1
          if (finishedAt >= measuredFrom && finishedAt < endsAt) measured += 1
          elapsed = finishedAt - startedAt
        }
      }),
    )
  } finally {
    for (const connection of pool) connection.close()
  }
  const { user, system } = process.cpuUsage(used)
  const busy = (user + system) / 1000 / elapsed
  return { perSecond: count === undefined ? measured / seconds : (signUps / elapsed) * 1000, signUps, latencies, busy }
}

/**
 * All people request their codes before the first of them sends a code. The bench reads the codes between these two
 * phases, so the time for reading them does not count.
 */
export async function signUpWithoutMail({ api, people, seconds, count }: Crowd): Promise<SignUpResult> {
  const emails = Array.from({ length: count ?? Math.max(people, Math.round(300 * seconds)) }, newEmail)
  const send = (requests: string[], check?: (answer: Answer) => void) =>
    load({
      ports: api.ports,
      connections: people,
      count: requests.length,
      next: () => requests.pop()!,
      mayRefuse: true,
      ...(check && { check }),
    })
  const requested = await send(emails.map(api.requestCode))
  const codes = await api.takeCodes()
  const verified = await send(
    emails.map(email => api.verifyCode(email, codes.get(email)!)),
    answer => api.check(parseBody(answer)),
  )
  const elapsed = [requested, verified].reduce((sum, each) => sum + each.requests / each.perSecond, 0)
  return {
    perSecond: emails.length / elapsed,
    signUps: emails.length,
    latencies: [...requested.latencies, ...verified.latencies],
    busy: Math.max(requested.busy, verified.busy),
  }
}

import { setTimeout as delay } from 'node:timers/promises'
import type { Database } from '../../src/db/sql.ts'
import { INTAKE_KEY } from './app.ts'
import type { Service } from './service.ts'
import type { smtpServer } from './smtp.ts'
import { waitUntil } from './wait-until.ts'

/**
 * Sends a POST request to a randomly chosen service.
 * @returns the response, or undefined if the service did not answer
 */
export async function post(
  services: Service[],
  path: string,
  body: unknown,
  token?: string,
): Promise<Response | undefined> {
  const service = services[Math.floor(Math.random() * services.length)]!
  return fetch(service.address + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(10_000),
  }).catch(() => undefined)
}

/** Signs up a user with the code from the mail. @returns the user's token */
export async function signUpByMail(
  services: Service[],
  smtp: Awaited<ReturnType<typeof smtpServer>>,
  email: string,
): Promise<string> {
  await post(services, '/api/v1/auth/request-otp', { email, first_name: 'A', last_name: 'B', accept_cgu: true })
  const mails = () => smtp.mails.filter(mail => mail.to.includes(email))
  await smtp.until(() => mails().length > 0)
  const code = /^\d{4}$/m.exec(mails()[0]!.parsed.text!)![0]
  const answer = await post(services, '/api/v1/auth/verify-otp', { email, code })
  return ((await answer!.json()) as { access_token: string }).access_token
}

/** Inserts four accounts into a database without accounts. @returns the ids of the accounts */
export async function makePlayers(sql: Database): Promise<number[]> {
  await sql`
    insert into app_user (email, first_name, last_name, locale, terms_version, terms_accepted_at, created_at, updated_at)
    select 'player' || n || '@example.com', 'P', 'P', 'fr', '1', now(), now(), now() from generate_series(1, 4) as n`
  return (await sql<{ id: number }>`select id from app_user order by id`).map(user => user.id)
}

/**
 * Requests codes and reports scores until `stop` is called, with four concurrent requests of each kind. Each score is
 * announced to three of the four players.
 * @param maxMs the longest time until the caller must call `stop`; after this time, the load fails with an error
 * @returns three sets that grow while the load runs: the e-mail addresses and the score ids of all acknowledged
 * requests, and the statuses of all answers
 */
export function startLoad(services: Service[], players: number[], maxMs = 300_000) {
  const acknowledged = { emails: new Set<string>(), scores: new Set<number>() }
  const statuses = new Set<number>()
  const deadline = performance.now() + maxMs
  let isRunning = true
  let count = 0

  async function load(): Promise<void> {
    while (isRunning) {
      if (performance.now() > deadline) throw new Error(`the load was not stopped within ${maxMs} ms`)
      count += 1
      const id = count
      const email = `n${id}@example.com`
      const [asked, reported] = await Promise.all([
        post(services, '/api/v1/auth/request-otp', { email, first_name: 'A', last_name: 'B', accept_cgu: true }),
        post(services, '/internal/v1/events', scoreEvent(id, players), INTAKE_KEY),
      ])
      for (const answer of [asked, reported]) if (answer) statuses.add(answer.status)
      if (asked?.status === 200) acknowledged.emails.add(email)
      if (reported && [200, 202].includes(reported.status)) acknowledged.scores.add(id)
      await delay(5)
    }
  }

  const loads = Array.from({ length: 4 }, load)
  return {
    acknowledged,
    statuses,
    /** Waits until fifty more scores are acknowledged. */
    async more(): Promise<void> {
      const enough = acknowledged.scores.size + 50
      await waitUntil(() => acknowledged.scores.size >= enough, 60_000)
    },
    async stop(): Promise<void> {
      isRunning = false
      await Promise.all(loads)
    },
  }
}

/** Returns the number of notifications for each score id. */
export async function countAnnouncements(sql: Database): Promise<Map<number, number>> {
  const rows = await sql<{ id: number; count: number }>`
    select (data ->> 'score_id')::bigint as id, count(*) from notification group by 1`
  return new Map(rows.map(row => [row.id, row.count]))
}

export function scoreEvent(id: number, players: number[]) {
  return {
    specversion: '1.0',
    id: `score ${id}`,
    source: '/load',
    type: 'score_submitted',
    time: '2026-01-17T18:00:00Z',
    data: {
      game_id: 1 + (id % 5),
      creator_id: players[0],
      player_ids: players,
      actor_id: players[0],
      score: { id, sets: '6-4 6-3' },
    },
  }
}

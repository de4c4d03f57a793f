import assert from 'node:assert/strict'
import { type Bench, compare, type Figures } from '../measure.ts'
import { administer } from '../postgres.ts'
import { startProgram, startService } from '../programs.ts'
import { formatRatio, goalRow, type Part } from '../report.ts'
import { get, pickRandom } from '../requests.ts'
import { callers, seedService } from '../seed.ts'

const USERS = 5_000
const SMOKE_USERS = 1_000

/**
 * Measures `GET /auth/me`, compared with the ceiling, the minimal server in `programs/ceiling.ts`, and with the session
 * check of better-auth.
 */
export async function sessionCheck(bench: Bench): Promise<Part> {
  const users = bench.smoke ? SMOKE_USERS : USERS
  const url = await bench.postgres.createMigrated('session_check')
  await seedService(url, { users, notifications: 1 })
  const peerUrl = await bench.postgres.createDatabase('better_auth_sessions')
  const programs = await Promise.all([
    startService(url),
    startProgram('ceiling', url),
    startProgram('better-auth', peerUrl),
  ] as const)
  await seedBetterAuth(peerUrl, users)
  const people = callers(1_000)
  const own = people.map(({ token }) => get('/api/v1/auth/me', token))
  const peer = people.map(({ userId }) => get('/api/auth/get-session', sessionToken(userId)))
  const checkOwn = ({ data }: any) => assert.equal(data.email, `user${data.id}@example.com`)
  const checkPeer = ({ user }: any) => assert.equal(user.email, `user${user.id}@example.com`)
  try {
    const figures = await compare(bench, [
      { name: 'courtside', programs: [programs[0]], next: () => pickRandom(own), check: checkOwn },
      { name: 'ceiling', programs: [programs[1]], next: () => pickRandom(own), check: checkOwn },
      { name: 'better-auth', programs: [programs[2]], next: () => pickRandom(peer), check: checkPeer },
    ])
    const [courtside, , betterAuth] = figures as [Figures, Figures, Figures]
    return {
      rows: [
        goalRow(
          'auth/me: throughput relative to better-auth',
          courtside.perSecond / betterAuth.perSecond,
          { min: 10 },
          formatRatio,
        ),
      ],
      comparisons: [{ work: 'auth/me', figures }],
    }
  } finally {
    await Promise.all(programs.map(program => program.stop()))
  }
}

function sessionToken(userId: number | string): string {
  return `session-of-${userId}-abcdefghijklmnop`
}

async function seedBetterAuth(url: string, users: number): Promise<void> {
  await administer(
    url,
    `insert into "user" (id, name, email, "emailVerified", "createdAt", "updatedAt")
    select i, 'Marie Durand', 'user' || i || '@example.com', true, now(), now() from generate_series(1, ${users}) as i`,
  )
  await administer(
    url,
    `insert into session (id, "expiresAt", token, "createdAt", "updatedAt", "userId")
    select i, now() + interval '7 days', '${sessionToken("' || i || '")}', now(), now(), i
    from generate_series(1, ${users}) as i`,
  )
  await administer(url, 'vacuum analyze')
}

import type { EventEmitter } from 'node:events'
import { pino } from 'pino'
import { eraseUser, exportUser } from '../../src/accounts/personal-data.ts'
import { createApp } from '../../src/app.ts'
import { readConfig } from '../../src/config.ts'
import { createContext } from '../../src/context.ts'
import { PLANNER_OPTIONS } from '../../src/db/connection.ts'
import type { Sql } from '../../src/db/sql.ts'
import { fireDue } from '../../src/games/schedule.ts'
import { readInboxChanges } from '../../src/notifications/inbox-changes.ts'
import { makeEvent } from '../events.ts'
import { INTAKE_KEY, JWT_SECRET } from '../programs.ts'
import { type Caller, callers, type Seed } from '../seed.ts'
import { collectPlans, AUTO_EXPLAIN_SETTINGS, type Plan } from './plans.ts'

/**
 * Goes once through all that the service does, in this process, on a database of some size, and collects the plan of every
 * statement as PostgreSQL really ran it.
 * @param mode whether plans are made for the values at hand or for any values; a prepared statement may get either
 */
export async function collectJourneyPlans(url: string, seed: Seed, mode: 'force_custom_plan' | 'force_generic_plan') {
  const explaining = [...AUTO_EXPLAIN_SETTINGS, `plan_cache_mode=${mode}`, 'jit=off'].map(option => `-c ${option}`)
  const databaseUrl = `${url}?options=${encodeURIComponent([PLANNER_OPTIONS, ...explaining].join(' '))}`
  const config = readConfig({
    DATABASE_URL: databaseUrl,
    JWT_SECRET,
    INTAKE_KEYS: INTAKE_KEY,
    SMTP_URL: 'smtp://127.0.0.1:9',
    ROLE: 'web',
    THROTTLE_REQUEST_OTP: '1000000',
    THROTTLE_VERIFY_OTP: '1000000',
  })
  const found = { databaseUrl, jwtSecrets: [JWT_SECRET], intakeKeys: [INTAKE_KEY] }
  const ctx = createContext(config, pino({ level: 'silent' }), found)
  const plans: Plan[] = []
  let request = ''
  const { sql, readSql, intakeSql } = ctx
  for (const connections of [sql.pipeline, sql.pool, readSql.pipeline, intakeSql.pool]) {
    collectPlans(connections as EventEmitter, plan => plans.push({ request, ...plan }))
  }
  const app = await createApp(ctx)
  await app.ready()
  const as = (name: string) => {
    request = name
  }
  const call: Call = async (name, method, path, token, body, type = 'application/json') => {
    as(name)
    const headers = {
      ...(token && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'content-type': type }),
    }
    const payload = body === undefined ? undefined : JSON.stringify(body)
    const response = await app.inject({ method, url: path, headers, ...(payload !== undefined && { payload }) })
    if (response.statusCode >= 500) throw new Error(`${name}: ${response.statusCode} ${response.body}`)
    return response.json()
  }
  try {
    const [caller, other] = callers([7, 8]) as [Caller, Caller]
    await signInSteps(call, ctx)
    await inboxSteps(call, caller, other, seed)
    await intakeSteps(call, seed)
    await runBackgroundWork(ctx.sql, as, seed)
  } finally {
    await app.close()
    await ctx.close()
  }
  return plans
}

type Call = (
  name: string,
  method: 'GET' | 'POST' | 'DELETE',
  path: string,
  token?: string,
  body?: unknown,
  type?: string,
) => Promise<any>

async function signInSteps(call: Call, { sql, keys }: Pick<ReturnType<typeof createContext>, 'sql' | 'keys'>) {
  const email = `explained${Date.now()}@example.com`
  const ask = { email, first_name: 'Marie', last_name: 'Durand', accept_cgu: true }
  await call('request-otp, sign-up', 'POST', '/api/v1/auth/request-otp', undefined, ask)
  await call('request-otp, unknown', 'POST', '/api/v1/auth/request-otp', undefined, { email: `x${email}` })
  await call('request-otp, known', 'POST', '/api/v1/auth/request-otp', undefined, { email: 'user99@example.com' })
  await call('request-otp, too soon', 'POST', '/api/v1/auth/request-otp', undefined, { email })
  const [job] = await sql<{ payload: { code_id: string; sealed: string } }>`
    select payload from graphile_worker._private_jobs, sign_in_code
    where email = ${email} and payload->>'code_id' = sign_in_code.id::text`
  const code = keys.open(job!.payload.code_id, job!.payload.sealed)!
  const wrong = code === '0000' ? '0001' : '0000'
  await call('verify-otp, wrong', 'POST', '/api/v1/auth/verify-otp', undefined, { email, code: wrong })
  const { access_token: token } = await call('verify-otp', 'POST', '/api/v1/auth/verify-otp', undefined, {
    email,
    code,
  })
  await call('me', 'GET', '/api/v1/auth/me', token)
  await call('level-assessment', 'POST', '/api/v1/auth/level-assessment', token, { game_level_id: 3 })
  await call('game-levels', 'GET', '/api/v1/game-levels')
  const { access_token: next } = await call('refresh', 'POST', '/api/v1/auth/refresh', token)
  await call('logout', 'POST', '/api/v1/auth/logout', next)
}

async function inboxSteps(call: Call, caller: Caller, other: Caller, seed: Seed): Promise<void> {
  const { token } = caller
  const list = '/api/v1/notifications'
  const { data } = await call('page 1', 'GET', list, token)
  await call('page 50', 'GET', `${list}?page=50`, token)
  await call('before an id', 'GET', `${list}?before_id=${data[3].id}`, token)
  await call('unread count', 'GET', `${list}/unread-count`, token)
  await call('read', 'POST', `${list}/${data[0].id}/read`, token)
  await call("read another's", 'POST', `${list}/${other.userId}/read`, token)
  await call('read an unknown one', 'POST', `${list}/${seed.notifications * 10}/read`, token)
  await call('read-all of some', 'POST', `${list}/read-all`, token, { ids: data.map((each: any) => each.id) })
  await call('read-all', 'POST', `${list}/read-all`, token)
  await call('delete', 'DELETE', `${list}/${data[1].id}`, token)
}

async function intakeSteps(call: Call, seed: Seed): Promise<void> {
  const events = '/internal/v1/events'
  const event: any = makeEvent(seed.users)
  await call('intake, one fact', 'POST', events, INTAKE_KEY, event)
  await call('intake, a repeat', 'POST', events, INTAKE_KEY, event)
  const moved = { ...event, id: `${event.id}-moved`, data: { ...event.data, starts_at: '2031-01-19T17:00:00Z' } }
  await call('intake, a moved game', 'POST', events, INTAKE_KEY, { ...moved, type: 'game_updated' })
  await call('intake, a cancelled game', 'POST', events, INTAKE_KEY, {
    ...moved,
    id: `${event.id}-off`,
    type: 'game_cancelled',
  })
  const batch = Array.from({ length: 100 }, () => makeEvent(seed.users))
  await call('intake, a batch of 100', 'POST', events, INTAKE_KEY, batch, 'application/cloudevents-batch+json')
}

/** What no request asks for: reminders, streams, the deletion and the export of an account. */
async function runBackgroundWork(
  sql: Parameters<typeof eraseUser>[0],
  as: (name: string) => void,
  seed: Seed,
): Promise<void> {
  as('reminders that are due')
  const undone = new Error('as it was')
  await sql
    .begin(async (tx: Sql) => {
      await fireDue(tx, { now: new Date('2030-01-19T16:00:00Z'), timeZone: 'Europe/Paris' })
      throw undone
    })
    .catch(error => {
      if (error !== undone) throw error
    })
  as('news for a stream')
  await readInboxChanges(sql, [7], new Map([[7, new Set([7, 7 + seed.users])]]))
  as('export of an account')
  await exportUser(sql, 11)
  as('deletion of an account')
  await eraseUser(sql, 12)
}

import type { EventEmitter } from 'node:events'
import { pino } from 'pino'
import { createApp } from '../../src/app.ts'
import { readConfig } from '../../src/config.ts'
import { type Context, createContext } from '../../src/context.ts'
import { PLANNER_OPTIONS } from '../../src/db/connection-config.ts'
import type { Sql } from '../../src/db/sql.ts'
import { fireDue } from '../../src/games/schedule.ts'
import { readInbox, readInboxChanges } from '../../src/notifications/inbox-changes.ts'
import { eraseUser, exportUser } from '../../src/personal-data.ts'
import { makeEvent } from '../events.ts'
import { INTAKE_KEY, JWT_SECRET } from '../programs.ts'
import { type Caller, callers, type Seed } from '../seed.ts'
import { AUTO_EXPLAIN_SETTINGS, collectPlans, type Plan } from './plans.ts'

type PlanMode = 'force_custom_plan' | 'force_generic_plan'

/**
 * Calls all functions of the service in this process, and collects the plan of every executed statement.
 * @param mode whether PostgreSQL makes a plan for the values of each call (custom) or one plan for all values
 * (generic). In production, PostgreSQL may use either kind of plan.
 */
export async function collectJourneyPlans(url: string, seed: Seed, mode: PlanMode): Promise<Plan[]> {
  const ctx = createExplainedContext(url, mode)
  const plans: Plan[] = []
  let request = ''
  const { sql, readSql, intakeSql } = ctx
  for (const connections of [sql.pipeline, sql.pool, readSql.pipeline, intakeSql.pool]) {
    collectPlans(connections as EventEmitter, plan => plans.push({ request, ...plan }))
  }
  const app = await createApp(ctx)
  await app.ready()
  const setRequest = (name: string) => {
    request = name
  }
  const call: Call = async (name, method, path, { token, body, type = 'application/json' } = {}) => {
    setRequest(name)
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
    await runBackgroundWork(ctx.sql, setRequest)
  } finally {
    await app.close()
    await ctx.close()
  }
  return plans
}

/** Creates a context on whose connections PostgreSQL sends the plan of each statement to the client. */
function createExplainedContext(url: string, mode: PlanMode): Context {
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
  const bootstrap = { databaseUrl, jwtSecrets: [JWT_SECRET], intakeKeys: [INTAKE_KEY] }
  return createContext(config, pino({ level: 'silent' }), bootstrap)
}

/**
 * Sends a request and returns the JSON of the answer.
 * @param name the name of the request in the collected plans
 * @throws Error if the status is 500 or higher
 */
type Call = (
  name: string,
  method: 'GET' | 'POST' | 'DELETE',
  path: string,
  options?: { token?: string; body?: unknown; type?: string },
) => Promise<any>

async function signInSteps(call: Call, { sql, keys }: Pick<Context, 'sql' | 'keys'>): Promise<void> {
  const email = `explained${Date.now()}@example.com`
  const signUp = { email, first_name: 'Marie', last_name: 'Durand', accept_cgu: true }
  const requestCode = (name: string, body: unknown) => call(name, 'POST', '/api/v1/auth/request-otp', { body })
  const verifyCode = (name: string, body: unknown) => call(name, 'POST', '/api/v1/auth/verify-otp', { body })
  await requestCode('request-otp, sign-up', signUp)
  await requestCode('request-otp, unknown address', { email: `x${email}` })
  await requestCode('request-otp, known address', { email: 'user99@example.com' })
  await requestCode('request-otp, within the cooldown', { email })
  const [row] = await sql<{ id: string; sealed: string }>`select id, sealed from sign_in_code where email = ${email}`
  const code = keys.open(row!.id, row!.sealed)!
  await verifyCode('verify-otp, wrong code', { email, code: code === '0000' ? '0001' : '0000' })
  const { access_token: token } = await verifyCode('verify-otp', { email, code })
  await call('me', 'GET', '/api/v1/auth/me', { token })
  await call('level-assessment', 'POST', '/api/v1/auth/level-assessment', { token, body: { game_level_id: 3 } })
  await call('game-levels', 'GET', '/api/v1/game-levels')
  const { access_token: next } = await call('refresh', 'POST', '/api/v1/auth/refresh', { token })
  await call('logout', 'POST', '/api/v1/auth/logout', { token: next })
}

async function inboxSteps(call: Call, { token }: Caller, other: Caller, seed: Seed): Promise<void> {
  const list = '/api/v1/notifications'
  const { data } = await call('page 1', 'GET', list, { token })
  await call('page 50', 'GET', `${list}?page=50`, { token })
  await call('notifications before an id', 'GET', `${list}?before_id=${data[3].id}`, { token })
  await call('unread count', 'GET', `${list}/unread-count`, { token })
  await call('read', 'POST', `${list}/${data[0].id}/read`, { token })
  await call("read another user's notification", 'POST', `${list}/${other.userId}/read`, { token })
  await call('read an unknown notification', 'POST', `${list}/${seed.notifications * 10}/read`, { token })
  const ids = data.map((each: any) => each.id)
  await call('read-all with ids', 'POST', `${list}/read-all`, { token, body: { ids } })
  await call('read-all', 'POST', `${list}/read-all`, { token })
  await call('delete', 'DELETE', `${list}/${data[1].id}`, { token })
}

async function intakeSteps(call: Call, seed: Seed): Promise<void> {
  const report = (name: string, body: unknown, type?: string) =>
    call(name, 'POST', '/internal/v1/events', { token: INTAKE_KEY, body, ...(type && { type }) })
  const event: any = makeEvent(seed.users)
  await report('intake, one event', event)
  await report('intake, a repeated event', event)
  const moved = { ...event, id: `${event.id}-moved`, data: { ...event.data, starts_at: '2031-01-19T17:00:00Z' } }
  await report('intake, a moved game', { ...moved, type: 'game_updated' })
  await report('intake, a cancelled game', { ...moved, id: `${event.id}-off`, type: 'game_cancelled' })
  const batch = Array.from({ length: 100 }, () => makeEvent(seed.users))
  await report('intake, a batch of 100', batch, 'application/cloudevents-batch+json')
}

/**
 * Runs the statements that the requests above do not run: reminders, streams, and the export and deletion of an
 * account.
 */
async function runBackgroundWork(
  sql: Parameters<typeof eraseUser>[0],
  setRequest: (name: string) => void,
): Promise<void> {
  setRequest('due reminders')
  const rollback = new Error('rollback')
  await sql
    .begin(async (tx: Sql) => {
      await fireDue(tx, { now: new Date('2030-01-19T16:00:00Z'), timeZone: 'Europe/Paris' }, new Set())
      throw rollback
    })
    .catch(error => {
      if (error !== rollback) throw error
    })
  setRequest('inbox changes for a stream')
  const { floor, sentIds } = await readInbox(sql, 7, new Date())
  await readInboxChanges(sql, [{ userId: 7, floor: floor - 1, sentIds }])
  setRequest('export of an account')
  await exportUser(sql, 11)
  setRequest('deletion of an account')
  await eraseUser(sql, 12)
}

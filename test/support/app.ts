import assert from 'node:assert/strict'
import { after, before } from 'node:test'
import { pino } from 'pino'
import { createApp } from '../../src/app.ts'
import { type Config, readConfig } from '../../src/config.ts'
import { type Context, createContext } from '../../src/context.ts'
import { CONNECTION_LIMITS, type ConnectionLimits } from '../../src/http/connections.ts'
import type { App } from '../../src/http/route.ts'
import { logOptions } from '../../src/log.ts'
import type { Mailer } from '../../src/mail/mailer.ts'
import { testClock } from './clock.ts'
import { type TestDatabase, testDatabase } from './database.ts'
import { type AnswerCheck, checkAnswers } from './declared-answers.ts'

export const JWT_SECRET = 'kuC4vBnmNwzIEYxX0mVQJ1y7s2dGgqLh'
/** A private key for pushes, from RFC 8291. */
export const VAPID_KEY = 'q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94'
export const INTAKE_KEY = 'Zt8RkPp3aWvYxq1LmN7oBc5dEf9gHiJk'

export type Harness = {
  ctx: Context
  app: App
  database: TestDatabase
  clock: ReturnType<typeof testClock>
  /** Records which JSON answers were compared with the schemas of their routes, and where they differ. */
  answers: AnswerCheck
  /** Contains the log lines of the app, each parsed from JSON. */
  logged: Record<string, unknown>[]
  /**
   * Sends a request through the whole HTTP stack, without a socket. If `body` is a string, it is sent unchanged. Any
   * other body is sent as JSON.
   * @throws if a JSON answer does not match the schema of its route
   */
  call(method: string, url: string, options?: Call): Promise<Answer>
}

type Answer = { status: number; headers: Record<string, string>; body: any; text: string }
type Call = { token?: string | undefined; body?: unknown; headers?: Record<string, string>; remoteAddress?: string }

/**
 * Registers hooks that create an app with its real options on a new database before the tests, and close the app after
 * the tests. Call this function at the top of a test file or suite.
 */
export function harness(
  env: Record<string, string> = {},
  overrides: Parameters<typeof createContext>[3] = {},
): Harness {
  const h = {
    clock: testClock(),
    logged: [] as Record<string, unknown>[],
    call: (method: string, url: string, options?: Call) => call(h, method, url, options),
  } as Harness
  before(async () => {
    h.database = await testDatabase()
    h.ctx = createContext(
      testConfig(h.database.url, env),
      captureLog(h.logged, env.LOG_LEVEL),
      bootstrap(h.database.url),
      {
        now: h.clock.now,
        ...overrides,
      },
    )
    h.app = await createApp(h.ctx)
    h.answers = checkAnswers(h.app)
    await h.app.ready()
  })
  after(async () => {
    await h.app.close()
    await h.ctx.close()
    await h.database.drop()
    assert.deepEqual(h.answers.violations, [])
  })
  return h
}

/** The differences of a second process: the URL of its database, its clock, its secrets, its mailer, and some
 * of its limits. */
type Differences = {
  databaseUrl?: string
  now?: () => Date
  jwtSecrets?: string[]
  mailer?: Mailer
  limits?: Partial<ConnectionLimits>
}

export type AnotherApp = Pick<Harness, 'ctx' | 'app' | 'answers' | 'call'> & { close(): Promise<void> }

/**
 * Creates a second app, which represents a second process of the service. By default, both apps share the
 * database, the clock, the secrets and the log. They never share memory.
 */
export async function anotherApp(
  { ctx: { log }, clock, database }: Harness,
  env: Record<string, string> = {},
  {
    databaseUrl = database.url,
    now = clock.now,
    jwtSecrets = [JWT_SECRET],
    limits = {},
    ...overrides
  }: Differences = {},
): Promise<AnotherApp> {
  const secrets = { ...bootstrap(databaseUrl), jwtSecrets }
  const ctx = createContext(testConfig(databaseUrl, env), log, secrets, { now, ...overrides })
  const app = await createApp(ctx, { ...CONNECTION_LIMITS, ...limits })
  const answers = checkAnswers(app)
  return {
    ctx,
    app,
    answers,
    call: (method, url, options) => call({ app, answers }, method, url, options),
    async close() {
      await app.close()
      await ctx.close()
      assert.deepEqual(answers.violations, [])
    },
  }
}

/**
 * Returns the required settings of a process with an external database. Without `smtpUrl`, the process uses the
 * development mailbox.
 */
export function settingsFor(databaseUrl: string, smtpUrl?: string): Record<string, string> {
  // All sign-ups of the tests come from one address, so a process with a mail server must not limit them.
  const mail: Record<string, string> =
    smtpUrl === undefined ? { DEV_MAILBOX: 'on' } : { SMTP_URL: smtpUrl, SIGN_UP_LIMITS: 'off' }
  return { DATABASE_URL: databaseUrl, ...mail, JWT_SECRET, INTAKE_KEYS: INTAKE_KEY }
}

function testConfig(databaseUrl: string, env: Record<string, string> = {}): Config {
  return readConfig({
    ...settingsFor(databaseUrl),
    THROTTLE_REQUEST_OTP: '1000000',
    THROTTLE_VERIFY_OTP: '1000000',
    VAPID_PRIVATE_KEY: VAPID_KEY,
    VAPID_SUBJECT: 'mailto:admin@club.example',
    ...env,
  })
}

function bootstrap(databaseUrl: string) {
  return { databaseUrl, jwtSecrets: [JWT_SECRET], intakeKeys: [INTAKE_KEY] }
}

async function call(
  { app, answers }: Pick<Harness, 'app' | 'answers'>,
  method: string,
  url: string,
  { token, body, headers, remoteAddress }: Call = {},
): Promise<Answer> {
  const response = await app.inject({
    method: method as 'GET',
    url,
    ...(remoteAddress !== undefined && { remoteAddress }),
    headers: {
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { payload: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  assert.deepEqual(answers.violations, [])
  const isJson = /json/.test(String(response.headers['content-type']))
  return {
    status: response.statusCode,
    headers: response.headers as Record<string, string>,
    text: response.body,
    body: isJson && response.body !== '' ? response.json() : undefined,
  }
}

function captureLog(lines: Record<string, unknown>[], level = 'debug') {
  return pino(logOptions(level as Config['logLevel']), { write: (line: string) => lines.push(JSON.parse(line)) })
}

import { after, before } from 'node:test'
import { pino } from 'pino'
import { createApp } from '../../src/app.ts'
import { type Config, readConfig } from '../../src/config.ts'
import { type Context, createContext } from '../../src/context.ts'
import type { App } from '../../src/http/route.ts'
import { logOptions } from '../../src/log.ts'
import { testClock } from './clock.ts'
import { type TestDatabase, testDatabase } from './database.ts'

export const JWT_SECRET = 'kuC4vBnmNwzIEYxX0mVQJ1y7s2dGgqLh'
export const INTAKE_KEY = 'Zt8RkPp3aWvYxq1LmN7oBc5dEf9gHiJk'

export type Harness = {
  ctx: Context
  app: App
  database: TestDatabase
  clock: ReturnType<typeof testClock>
  /** The lines that were logged, parsed. */
  logged: Record<string, unknown>[]
  /** Goes through the whole HTTP stack, without a socket. `body` is sent as JSON unless it is a string. */
  call(method: string, url: string, options?: Call): Promise<Answer>
}

type Answer = { status: number; headers: Record<string, string>; body: any; text: string }
type Call = { token?: string | undefined; body?: unknown; headers?: Record<string, string>; remoteAddress?: string }

/** The app with its real options on a database of its own; to be called at a file's or a suite's top. */
export function harness(
  env: Record<string, string> = {},
  overrides: Parameters<typeof createContext>[3] = {},
): Harness {
  const h = {
    clock: testClock(),
    logged: [] as Record<string, unknown>[],
    call: (method: string, url: string, options?: Call) => call(h.app, method, url, options),
  } as Harness
  before(async () => {
    h.database = await testDatabase()
    h.ctx = createContext(testConfig(h.database.url, env), captureLog(h.logged, env.LOG_LEVEL), found(h.database.url), {
      now: h.clock.now,
      ...overrides,
    })
    h.app = await createApp(h.ctx)
    await h.app.ready()
  })
  after(async () => {
    await h.app.close()
    await h.ctx.close()
    await h.database.drop()
  })
  return h
}

export type AnotherApp = Pick<Harness, 'ctx' | 'app' | 'call'> & { close(): Promise<void> }

/** Another process, as far as anybody can tell: it shares a database with the first and nothing else but the clock and the log. */
export async function anotherApp(
  { ctx: { log }, clock, database }: Harness,
  env: Record<string, string> = {},
  databaseUrl = database.url,
): Promise<AnotherApp> {
  const ctx = createContext(testConfig(databaseUrl, env), log, found(databaseUrl), { now: clock.now })
  const app = await createApp(ctx)
  return {
    ctx,
    app,
    call: (method, url, options) => call(app, method, url, options),
    async close() {
      await app.close()
      await ctx.close()
    },
  }
}

/** The settings that a process can't do without on a database of its own. It mails to a server, or else to its mailbox. */
export function settingsFor(databaseUrl: string, smtpUrl?: string): Record<string, string> {
  const mail: Record<string, string> = smtpUrl === undefined ? { DEV_MAILBOX: 'on' } : { SMTP_URL: smtpUrl }
  return { DATABASE_URL: databaseUrl, ...mail, JWT_SECRET, INTAKE_KEYS: INTAKE_KEY }
}

function testConfig(databaseUrl: string, env: Record<string, string> = {}): Config {
  return readConfig({
    ...settingsFor(databaseUrl),
    THROTTLE_REQUEST_OTP: '1000000',
    THROTTLE_VERIFY_OTP: '1000000',
    ...env,
  })
}

function found(databaseUrl: string) {
  return { databaseUrl, jwtSecrets: [JWT_SECRET], intakeKeys: [INTAKE_KEY] }
}

async function call(
  app: App,
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

import { BlockList, isIP } from 'node:net'

/** A length of time: whole calendar days, or milliseconds. Days follow the wall clock over a clock change. */
export type Duration = { days: number } | { ms: number }

export type Config = Readonly<ReturnType<typeof settle>>

/** Every fault of the environment at once. `npm start` prints them and exits with 78 (EX_CONFIG of sysexits.h). */
export class ConfigError extends Error {
  readonly faults: string[]
  constructor(faults: string[]) {
    super(`Bad configuration:\n${faults.map(fault => `  - ${fault}`).join('\n')}`)
    this.name = 'ConfigError'
    this.faults = faults
  }
}

type Setting<T> = { default: string; doc: string; parse: (value: string) => T }

/** Each setting once: its default as one would write it, what it is for, and how it is read. `parse` throws a plain sentence. */
export const SETTINGS = {
  HOST: setting('127.0.0.1', 'address to listen on', text),
  PORT: setting('3000', 'port to listen on; 0 takes a free one', integer(0, 65_535)),
  DATABASE_URL: setting(
    '',
    'an external PostgreSQL (15 or newer), several hosts allowed; empty: the embedded one',
    optional(postgresUrl),
  ),
  DATA_DIR: setting('./data', 'where the embedded database and the generated secrets live', text),
  SMTP_URL: setting('', 'the mail server, `smtp://` or `smtps://`; empty: the development mailbox', optional(smtpUrl)),
  MAIL_FROM: setting('Courtside <no-reply@localhost>', 'the sender of the mails', sender),
  JWT_SECRET: setting('', 'secrets of at least 32 bytes, newest first; empty: generated and kept', list(secret)),
  INTAKE_KEYS: setting('', 'keys of at least 32 bytes for the event intake; empty: generated and kept', list(secret)),
  TRUST_PROXY: setting('', 'addresses or CIDR ranges of your proxies', list(cidr)),
  CORS_ORIGINS: setting('', 'origins whose pages may call the API', list(origin)),
  METRICS_TOKEN: setting('', 'bearer of `/metrics`; empty: no metrics', optional(secretOf(16))),
  THROTTLE_REQUEST_OTP: setting('5', 'requests a minute and client', integer(1, 1_000_000)),
  THROTTLE_VERIFY_OTP: setting('10', 'requests a minute and client', integer(1, 1_000_000)),
  REMINDER_OFFSETS: setting('1d,2h', 'how long before a game its players are reminded', list(duration)),
  TIMEZONE: setting('Europe/Paris', 'the zone the texts tell times in', timeZone),
  RETENTION_READ_DAYS: setting('90', 'read notifications older than this are pruned; 0 keeps', integer(0, 36_500)),
  RETENTION_DAYS: setting('365', 'notifications older than this are pruned; 0 keeps', integer(0, 36_500)),
  TERMS_VERSION: setting('1', 'the version of the terms that people accept', text),
  WEB: setting('on', '`off` takes away the page at `/`', oneOf('on', 'off')),
  ROLE: setting('all', '`web`, `worker`, or both in one process', oneOf('all', 'web', 'worker')),
  LOG_LEVEL: setting('info', 'how much is logged', oneOf('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent')),
  DEV_MAILBOX: setting('off', '`on` allows the development mailbox where it would be a fault', oneOf('on', 'off')),
} satisfies Record<string, Setting<unknown>>

/**
 * Turns the environment into a frozen Config. Pure; an unset or blank variable takes its default.
 * @throws ConfigError listing every fault at once
 */
export function readConfig(env: Record<string, string | undefined>): Config {
  const faults = new Map<string, string>()
  const read = <T>(name: keyof typeof SETTINGS, declared: Setting<T>): T => {
    const value = env[name]?.trim() || declared.default
    try {
      return declared.parse(value)
    } catch (error) {
      // The value itself stays unsaid: it may be a secret.
      faults.set(name, `${name}: ${(error as Error).message}`)
      return undefined as T
    }
  }
  const config = settle(read)
  const all = [...faults.values(), ...contradictions(config, env, name => faults.has(name))]
  if (all.length > 0) throw new ConfigError(all)
  return Object.freeze(config)
}

function settle(read: <T>(name: keyof typeof SETTINGS, declared: Setting<T>) => T) {
  const role = read('ROLE', SETTINGS.ROLE)
  return {
    host: read('HOST', SETTINGS.HOST),
    port: read('PORT', SETTINGS.PORT),
    /** Undefined: the embedded database under `dataDir`. */
    databaseUrl: read('DATABASE_URL', SETTINGS.DATABASE_URL),
    dataDir: read('DATA_DIR', SETTINGS.DATA_DIR),
    /** Undefined: the development mailbox. */
    smtpUrl: read('SMTP_URL', SETTINGS.SMTP_URL),
    mailFrom: read('MAIL_FROM', SETTINGS.MAIL_FROM),
    /** Newest first. Empty only with the embedded database: then generated and kept. */
    jwtSecrets: read('JWT_SECRET', SETTINGS.JWT_SECRET),
    intakeKeys: read('INTAKE_KEYS', SETTINGS.INTAKE_KEYS),
    trustProxy: read('TRUST_PROXY', SETTINGS.TRUST_PROXY),
    corsOrigins: read('CORS_ORIGINS', SETTINGS.CORS_ORIGINS),
    metricsToken: read('METRICS_TOKEN', SETTINGS.METRICS_TOKEN),
    /** Requests a minute and client. */
    throttle: {
      requestOtp: read('THROTTLE_REQUEST_OTP', SETTINGS.THROTTLE_REQUEST_OTP),
      verifyOtp: read('THROTTLE_VERIFY_OTP', SETTINGS.THROTTLE_VERIFY_OTP),
    },
    reminderOffsets: read('REMINDER_OFFSETS', SETTINGS.REMINDER_OFFSETS),
    timeZone: read('TIMEZONE', SETTINGS.TIMEZONE),
    retentionReadDays: read('RETENTION_READ_DAYS', SETTINGS.RETENTION_READ_DAYS),
    retentionDays: read('RETENTION_DAYS', SETTINGS.RETENTION_DAYS),
    termsVersion: read('TERMS_VERSION', SETTINGS.TERMS_VERSION),
    web: read('WEB', SETTINGS.WEB) === 'on',
    serves: role !== 'worker',
    works: role !== 'web',
    logLevel: read('LOG_LEVEL', SETTINGS.LOG_LEVEL),
    devMailbox: read('DEV_MAILBOX', SETTINGS.DEV_MAILBOX) === 'on',
  }
}

/**
 * What each setting allows by itself but not together with the others.
 * @param isFaulty whether a setting was given, but couldn't be read: it counts as given, whatever it was meant to be
 */
function contradictions(
  config: Config,
  env: Record<string, string | undefined>,
  isFaulty: (name: keyof typeof SETTINGS) => boolean,
): string[] {
  const faults: string[] = []
  const isExternal = config.databaseUrl !== undefined || isFaulty('DATABASE_URL')
  const mails = config.smtpUrl !== undefined || isFaulty('SMTP_URL')
  if (isExternal) {
    for (const [name, keys] of [
      ['JWT_SECRET', config.jwtSecrets],
      ['INTAKE_KEYS', config.intakeKeys],
    ] as const) {
      if (!isFaulty(name) && keys.length === 0) {
        faults.push(`${name}: required with DATABASE_URL; \`npm run courtside -- secret\` makes one`)
      }
    }
  }
  // The mailbox shows everybody's codes, so that it must never be found on anything but a developer's own machine.
  if (!mails && !config.devMailbox && !isFaulty('DEV_MAILBOX')) {
    const exposed = [
      isLoopback(config.host) ? undefined : 'a HOST beyond loopback',
      isExternal ? 'DATABASE_URL' : undefined,
      isFaulty('TRUST_PROXY') || config.trustProxy.length > 0 ? 'TRUST_PROXY' : undefined,
      env.NODE_ENV === 'production' ? 'NODE_ENV=production' : undefined,
    ].filter(reason => reason !== undefined)
    if (exposed.length > 0) {
      faults.push(
        `SMTP_URL: required with ${exposed.join(', ')} (or DEV_MAILBOX=on, which shows codes to anyone local)`,
      )
    }
  }
  // The mailbox lives in the memory of the process that sends the mail, so that process must be the one that shows it.
  if (!mails && !(config.serves && config.works)) {
    faults.push('SMTP_URL: required with ROLE=web or ROLE=worker; the development mailbox needs ROLE=all')
  }
  return faults
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))
}

function setting<T>(fallback: string, doc: string, parse: (value: string) => T): Setting<T> {
  return { default: fallback, doc, parse }
}

function text(value: string): string {
  return value
}

function optional<T>(parse: (value: string) => T): (value: string) => T | undefined {
  return value => (value === '' ? undefined : parse(value))
}

function list<T>(parse: (value: string) => T): (value: string) => T[] {
  return value =>
    value
      .split(',')
      .map(item => item.trim())
      .filter(item => item !== '')
      .map(parse)
}

function integer(minimum: number, maximum: number): (value: string) => number {
  return value => {
    const number = Number(value)
    if (!/^\d+$/.test(value) || number < minimum || number > maximum) {
      throw new Error(`must be a whole number from ${minimum} to ${maximum}`)
    }
    return number
  }
}

function oneOf<const T extends string>(...allowed: T[]): (value: string) => T {
  return value => {
    if (!allowed.includes(value as T)) throw new Error(`must be one of ${allowed.join(', ')}`)
    return value as T
  }
}

function postgresUrl(value: string): string {
  if (!/^postgres(ql)?:\/\/\S+$/.test(value)) throw new Error('must be a postgres:// URL')
  return value
}

function smtpUrl(value: string): string {
  if (!/^smtps?:\/\/\S+$/.test(value) || !URL.canParse(value)) throw new Error('must be an smtp:// or smtps:// URL')
  return value
}

/** One address, alone or behind a name. What a library makes of another text nobody would know before a mail comes back. */
function sender(value: string): string {
  const address = '[^\\s<>@,;]+@[^\\s<>@,;]+'
  if (!new RegExp(`^(${address}|("[^"\\n]*"|[^<>,;"\\n]*) *<${address}>)$`).test(value)) {
    throw new Error('must be one address, such as Club <no-reply@club.example>')
  }
  return value
}

function origin(value: string): string {
  if (!URL.canParse(value) || new URL(value).origin !== value) {
    throw new Error('must be origins such as https://app.example.com, without a path')
  }
  return value
}

function cidr(value: string): string {
  const [address, bits, ...rest] = value.split('/')
  const family = isIP(address ?? '')
  const size = bits === undefined ? 0 : integer(0, family === 4 ? 32 : 128)(bits)
  if (family === 0 || rest.length > 0) throw new Error('must be addresses or CIDR ranges such as 10.0.0.0/8')
  // BlockList is Node's own reading of a subnet; it throws where we have misread one.
  if (bits !== undefined) new BlockList().addSubnet(address!, size, family === 4 ? 'ipv4' : 'ipv6')
  return value
}

function secret(value: string): string {
  return secretOf(32)(value)
}

function secretOf(bytes: number): (value: string) => string {
  return value => {
    if (Buffer.byteLength(value) < bytes) throw new Error(`must be at least ${bytes} bytes`)
    if (/change.?me|your.?(256|secret|key)|example|placeholder|password/i.test(value) || new Set(value).size < 8) {
      throw new Error('is a placeholder; `npm run courtside -- secret` makes a real one')
    }
    return value
  }
}

function duration(value: string): Duration {
  const [, count, unit] = /^([1-9]\d{0,6})(d|h|m|s)$/.exec(value) ?? []
  if (!count || !unit) throw new Error('must be durations such as 1d, 2h, 90m or 30s')
  if (unit === 'd') return { days: Number(count) }
  return { ms: Number(count) * { h: 3_600_000, m: 60_000, s: 1_000 }[unit as 'h' | 'm' | 's'] }
}

function timeZone(value: string): string {
  // The list has the usual names; other spellings the formatter knows, but to make one takes a start a twentieth of a second.
  if (Intl.supportedValuesOf('timeZone').includes(value)) return value
  try {
    new Intl.DateTimeFormat('en', { timeZone: value })
    return value
  } catch {
    throw new Error('must be a time zone such as Europe/Paris')
  }
}

import { isIP } from 'node:net'
import { guessBudgets, signUpLimits } from './code-settings.ts'
import { parsePostgresUrl } from './db/postgres-url.ts'
import { isWiderThanOneOrganization } from './ip-address.ts'
import { findWeakness } from './weak-secrets.ts'

/**
 * A length of time, either in calendar days or in milliseconds. When daylight saving time begins or ends, a calendar
 * day has 23 or 25 hours.
 */
export type Duration = { days: number } | { ms: number }

export type Setting<T> = { default: string; doc: string; parse: (value: string) => T }

/**
 * All settings. Each setting has a default in the notation of an environment variable, a description for the README,
 * and a parser. If the value is invalid, the parser throws an error. The error's message completes a sentence that
 * begins with the name of the setting.
 */
export const SETTINGS = {
  HOST: setting('127.0.0.1', 'the address to listen on', text),
  PORT: setting('3000', 'the port to listen on; 0 selects any free port', integer(0, 65_535)),
  DATABASE_URL: setting(
    '',
    'the URL of an external PostgreSQL 15 or newer, with one or several hosts; empty: the embedded PostgreSQL',
    optional(postgresUrl),
  ),
  DATA_DIR: setting('./data', 'the folder for the embedded database and the generated secrets', text),
  SMTP_URL: setting(
    '',
    'the URL of the mail server, `smtp://` or `smtps://`; empty: the development mailbox',
    optional(smtpUrl),
  ),
  MAIL_FROM: setting('Courtside <no-reply@localhost>', 'the sender of all mails', sender),
  SMTP_HELO_NAME: setting(
    '',
    'the name of this host in the SMTP greeting, such as `mail.club.example`; empty: the name of the machine',
    optional(hostName),
  ),
  MAIL_CONCURRENCY: setting(
    '4',
    'the number of mails that a worker sends at the same time, each on its own connection',
    integer(1, 1_000),
  ),
  JWT_SECRET: setting(
    '',
    'secrets of at least 32 bytes, the newest first; empty: a generated secret in `DATA_DIR`',
    list(secret(32)),
  ),
  INTAKE_KEYS: setting(
    '',
    'keys of at least 32 bytes for the event intake; empty: a generated key in `DATA_DIR`',
    list(secret(32)),
  ),
  TRUST_PROXY: setting(
    '',
    'the addresses or CIDR ranges of your proxies; a range is at most a /8 (IPv4) or a /16 (IPv6)',
    list(cidr),
  ),
  SHARED_NETWORKS: setting(
    '',
    'networks that many people share, such as the Wi-Fi of a club: addresses or CIDR ranges with higher limits',
    list(cidr),
  ),
  CORS_ORIGINS: setting('', 'the origins whose pages may call the API', list(origin)),
  METRICS_TOKEN: setting('', 'the bearer token for `/metrics`; empty: `/metrics` does not exist', optional(secret(16))),
  THROTTLE_REQUEST_OTP: setting(
    '5',
    'the permitted requests to `request-otp` per client and minute',
    integer(1, 1_000_000),
  ),
  THROTTLE_VERIFY_OTP: setting(
    '10',
    'the permitted requests to `verify-otp` per client and minute',
    integer(1, 1_000_000),
  ),
  GUESS_BUDGETS: setting(
    'address=10,network=50,installation=100',
    'the wrong guesses before codes get more parts; any subset, or `off`; always off with the development mailbox',
    guessBudgets,
  ),
  SIGN_UP_LIMITS: setting(
    '60,600',
    'the unfinished sign-ups in an hour, from one network and in the installation, or `off`; always off with the ' +
      'development mailbox',
    signUpLimits,
  ),
  REMINDER_OFFSETS: setting('1d,2h', 'the times before a game at which its players get reminders', list(duration)),
  TIMEZONE: setting('Europe/Paris', 'the time zone for the times in notifications', timeZone),
  RETENTION_READ_DAYS: setting(
    '90',
    'the age in days at which read notifications are deleted; 0 keeps them forever',
    integer(0, 36_500),
  ),
  RETENTION_DAYS: setting(
    '365',
    'the age in days at which all notifications are deleted; 0 keeps them forever',
    integer(0, 36_500),
  ),
  TERMS_VERSION: setting('1', 'the version of the terms that users accept', text),
  TERMS_URL: setting('', 'the address of the terms, for the mail of a sign-up', optional(webUrl)),
  WEB: setting('on', '`off` removes the page at `/`', oneOf('on', 'off')),
  ROLE: setting(
    'all',
    '`web` answers requests, `worker` sends mails and reminders, `all` does both in one process',
    oneOf('all', 'web', 'worker'),
  ),
  LOG_LEVEL: setting(
    'info',
    'the lowest level that is logged',
    oneOf('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
  ),
  DEV_MAILBOX: setting(
    'off',
    '`on` allows the development mailbox in configurations in which it is otherwise refused',
    oneOf('on', 'off'),
  ),
  STOP_DELAY: setting(
    '0s',
    'the time from 0s to 60s between SIGTERM and the end of new requests; meanwhile `/readyz` answers 503',
    shortDelay,
  ),
} satisfies Record<string, Setting<unknown>>

/** The settings that select how mails are sent. If none of them is set, the development mailbox stores the mails. */
export const MAIL_SETTINGS = ['SMTP_URL'] as const

function setting<T>(defaultValue: string, doc: string, parse: (value: string) => T): Setting<T> {
  return { default: defaultValue, doc, parse }
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

function webUrl(value: string): string {
  if (!/^https?:\/\/\S+$/.test(value) || !URL.canParse(value)) throw new Error('must be an http:// or https:// URL')
  return value
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
  parsePostgresUrl(value)
  return value
}

function smtpUrl(value: string): string {
  if (!/^smtps?:\/\/\S+$/.test(value) || !URL.canParse(value)) throw new Error('must be an smtp:// or smtps:// URL')
  return value
}

/**
 * Accepts one address, with or without a name before it. Nodemailer would also accept other values, and might then send
 * from an unexpected address.
 * @returns the sender. A name that contains special characters is in quotes, as RFC 5322 requires
 */
function sender(value: string): string {
  const address = '[^\\s<>@,;]+@[^\\s<>@,;]+'
  const [, alone, quoted, plain, named] =
    new RegExp(`^(?:(${address})|(?:"([^"\\p{Cc}]*)"|([^<>,;"\\p{Cc}]*?)) *<(${address})>)$`, 'u').exec(value) ?? []
  if (alone) return alone
  if (!named) throw new Error('must be one address such as Club <no-reply@club.example>')
  const name = (quoted ?? plain ?? '').replaceAll('\\', '').trim()
  return /^[\w ]*$/.test(name) ? `${name} <${named}>`.trim() : `"${name}" <${named}>`
}

function hostName(value: string): string {
  if (!/^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/i.test(value))
    throw new Error('must be a host name such as mail.club.example')
  return value
}

/**
 * Accepts the value of the header `Origin` as browsers send it. Apps and browser extensions have their own schemes, such
 * as `capacitor://localhost`.
 */
function origin(value: string): string {
  const isWeb = /^https?:/.test(value) && URL.canParse(value) && new URL(value).origin === value
  const isApp = !/^(https?|file):/.test(value) && /^[a-z][a-z0-9+.-]*:\/\/[a-z0-9.-]+(:\d+)?$/.test(value)
  if (!(isWeb || isApp) || value.includes('*')) {
    throw new Error('must be origins such as https://app.example.com or capacitor://localhost, without a path or a *')
  }
  return value
}

function cidr(value: string): string {
  const [address, bits, ...rest] = value.split('/')
  const family = isIP(address ?? '')
  const maxBits = family === 4 ? 32 : 128
  const hasValidBits = bits === undefined || (/^\d+$/.test(bits) && Number(bits) >= 1 && Number(bits) <= maxBits)
  if (family === 0 || rest.length > 0 || !hasValidBits) {
    throw new Error('must be addresses or CIDR ranges such as 10.0.0.0/8')
  }
  // The service believes every header `X-Forwarded-For` from these addresses. In a wider range, anyone could be a proxy.
  if (bits !== undefined && isWiderThanOneOrganization(address!, Number(bits))) {
    throw new Error('must not contain a range wider than /8 (IPv4) or /16 (IPv6); list only your own proxies')
  }
  return value
}

function secret(minBytes: number): (value: string) => string {
  return value => {
    if (Buffer.byteLength(value) < minBytes) throw new Error(`must be at least ${minBytes} bytes`)
    const weakness = findWeakness(value)
    if (weakness) throw new Error(`${weakness}; \`npm run courtside -- secret\` prints a new secret`)
    return value
  }
}

function duration(value: string): Duration {
  const [, count, unit] = /^([1-9]\d{0,6})(d|h|m|s)$/.exec(value) ?? []
  if (!count || !unit) throw new Error('must be durations such as 1d, 2h, 90m or 30s')
  if (unit === 'd') return { days: Number(count) }
  return { ms: Number(count) * { h: 3_600_000, m: 60_000, s: 1_000 }[unit as 'h' | 'm' | 's'] }
}

/** Returns a delay in milliseconds. */
function shortDelay(value: string): number {
  const [, seconds] = /^(\d{1,2})s$/.exec(value) ?? []
  if (seconds === undefined || Number(seconds) > 60) throw new Error('must be from 0s to 60s, such as 5s')
  return Number(seconds) * 1_000
}

function timeZone(value: string): string {
  // `supportedValuesOf` lists one spelling of each name. `DateTimeFormat` accepts other spellings too. We try
  // `DateTimeFormat` second, because the creation of a `DateTimeFormat` takes 50 ms.
  if (Intl.supportedValuesOf('timeZone').includes(value)) return value
  try {
    new Intl.DateTimeFormat('en', { timeZone: value })
    return value
  } catch {
    throw new Error('must be a time zone such as Europe/Paris')
  }
}

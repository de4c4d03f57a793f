// The parsers of settings. If a value is invalid, a parser throws an error. The error's message completes a sentence
// that begins with the name of the setting.
import { isIP } from 'node:net'
import { parsePostgresUrl } from './db/postgres-url.ts'
import { isWiderThanOneOrganization } from './ip-address.ts'
import { findWeakness } from './weak-secrets.ts'

/**
 * A length of time, either in calendar days or in milliseconds. When daylight saving time begins or ends, a calendar
 * day has 23 or 25 hours.
 */
export type Duration = { days: number } | { ms: number }

export function text(value: string): string {
  return value
}

export function optional<T>(parse: (value: string) => T): (value: string) => T | undefined {
  return value => (value === '' ? undefined : parse(value))
}

export function list<T>(parse: (value: string) => T): (value: string) => T[] {
  return value =>
    value
      .split(',')
      .map(item => item.trim())
      .filter(item => item !== '')
      .map(parse)
}

/** @param schemes the allowed schemes, such as `http` */
export function url(...schemes: [string, string]): (value: string) => string {
  return value => {
    const isAllowed = schemes.some(scheme => value.startsWith(`${scheme}://`)) && /^\S+$/.test(value)
    if (!isAllowed || !URL.canParse(value)) throw new Error(`must be an ${schemes.join(':// or ')}:// URL`)
    return value
  }
}

export function integer(minimum: number, maximum: number): (value: string) => number {
  return value => {
    const number = Number(value)
    if (!/^\d+$/.test(value) || number < minimum || number > maximum) {
      throw new Error(`must be a whole number from ${minimum} to ${maximum}`)
    }
    return number
  }
}

export function oneOf<const T extends string>(...allowed: T[]): (value: string) => T {
  return value => {
    if (!allowed.includes(value as T)) throw new Error(`must be one of ${allowed.join(', ')}`)
    return value as T
  }
}

export function postgresUrl(value: string): string {
  parsePostgresUrl(value)
  return value
}

/**
 * A schema name has at most 32 characters. Channel names contain the schema name, and PostgreSQL limits a name to 63
 * bytes.
 */
export function schemaName(value: string): string {
  if (!/^[a-z_][a-z0-9_]{0,31}$/.test(value)) {
    throw new Error('must be a name of at most 32 lowercase letters, digits and underscores')
  }
  if (/^(pg_|information_schema$)/.test(value)) throw new Error('must not be a schema of PostgreSQL itself')
  return value
}

/**
 * Accepts one address, with or without a name before it. Nodemailer would also accept other values, and might then send
 * from an unexpected address.
 * @returns the sender. A name that contains special characters is in quotes, as RFC 5322 requires
 */
export function sender(value: string): string {
  const address = '[^\\s<>@,;]+@[^\\s<>@,;]+'
  const [, alone, quoted, plain, named] =
    new RegExp(`^(?:(${address})|(?:"([^"\\p{Cc}]*)"|([^<>,;"\\p{Cc}]*?)) *<(${address})>)$`, 'u').exec(value) ?? []
  if (alone) return alone
  if (!named) throw new Error('must be one address such as Club <no-reply@club.example>')
  const name = (quoted ?? plain ?? '').replaceAll('\\', '').trim()
  return /^[\w ]*$/.test(name) ? `${name} <${named}>`.trim() : `"${name}" <${named}>`
}

export function hostName(value: string): string {
  if (!/^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/i.test(value))
    throw new Error('must be a host name such as mail.club.example')
  return value
}

/**
 * Accepts the value of the header `Origin` as browsers send it. Apps and browser extensions have their own schemes,
 * such as `capacitor://localhost`.
 */
export function origin(value: string): string {
  const isWeb = /^https?:/.test(value) && URL.canParse(value) && new URL(value).origin === value
  const isApp = !/^(https?|file):/.test(value) && /^[a-z][a-z0-9+.-]*:\/\/[a-z0-9.-]+(:\d+)?$/.test(value)
  if (!(isWeb || isApp) || value.includes('*')) {
    throw new Error('must be origins such as https://app.example.com or capacitor://localhost, without a path or a *')
  }
  return value
}

/**
 * Accepts an address or a CIDR range. Refuses a range of more than one organization, because it contains addresses of
 * strangers.
 * @param advice what the operator should list instead
 */
export function cidr(advice: string): (value: string) => string {
  return value => {
    const [address, bits, ...rest] = value.split('/')
    const family = isIP(address ?? '')
    const maxBits = family === 4 ? 32 : 128
    const hasValidBits = bits === undefined || (/^\d+$/.test(bits) && Number(bits) >= 1 && Number(bits) <= maxBits)
    if (family === 0 || rest.length > 0 || !hasValidBits) {
      throw new Error('must be addresses or CIDR ranges such as 10.0.0.0/8')
    }
    if (bits !== undefined && isWiderThanOneOrganization(address!, Number(bits))) {
      throw new Error(`must not contain a range wider than /8 (IPv4) or /16 (IPv6); ${advice}`)
    }
    return value
  }
}

export function secret(minBytes: number): (value: string) => string {
  return value => {
    if (Buffer.byteLength(value) < minBytes) throw new Error(`must be at least ${minBytes} bytes`)
    const weakness = findWeakness(value)
    if (weakness) throw new Error(`${weakness}; \`npm run courtside -- secret\` prints a new secret`)
    return value
  }
}

export function duration(value: string): Duration {
  const [, count, unit] = /^([1-9]\d{0,6})(d|h|m|s)$/.exec(value) ?? []
  if (!count || !unit) throw new Error('must be durations such as 1d, 2h, 90m or 30s')
  if (unit === 'd') return { days: Number(count) }
  return { ms: Number(count) * { h: 3_600_000, m: 60_000, s: 1_000 }[unit as 'h' | 'm' | 's'] }
}

/** Returns a delay in milliseconds. */
export function shortDelay(value: string): number {
  const [, seconds] = /^(\d{1,2})s$/.exec(value) ?? []
  if (seconds === undefined || Number(seconds) > 60) throw new Error('must be from 0s to 60s, such as 5s')
  return Number(seconds) * 1_000
}

export function timeZone(value: string): string {
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

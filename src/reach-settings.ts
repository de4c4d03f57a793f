// The parsers of the settings for names, links, pushes and mails about unread notifications. If a value is invalid, a
// parser throws an error. The error's message completes a sentence that begins with the name of the setting.
import { createECDH } from 'node:crypto'
import { isLoopback } from './loopback.ts'
import { NOTIFICATION_TYPES, type NotificationType } from './notification-types.ts'

/** Hosts of push services: one host, or all hosts below a name. `name` has no `*.` before it. */
export type PushHost = { name: string; isSuffix: boolean; port: number }

/** The members of a notification's `data` that a link may contain. */
const LINK_VALUES = ['game_id', 'score_id', 'actor_id', 'starts_at']

const MAX_NAME_LENGTH = 60

/** Refuses control and format characters, because the name appears in the subjects of mails and next to other texts. */
export function appName(value: string): string {
  if (/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u.test(value) || [...value].length > MAX_NAME_LENGTH) {
    throw new Error(`must be one line of at most ${MAX_NAME_LENGTH} characters, without invisible characters`)
  }
  return value
}

/**
 * Accepts a URL to which other code appends paths.
 * @returns the URL in ASCII, because mail headers contain it, and without a slash at its end
 */
export function baseUrl(value: string): string {
  const url = parseWebUrl(value)
  if (!url || url.search || url.hash || !isRoutable(url.pathname)) {
    throw new Error('must be an http:// or https:// URL without a user, a query, a fragment, `*` and invalid escapes')
  }
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '')
}

/** Returns whether the router of HTTP requests can have a route below a path. */
function isRoutable(path: string): boolean {
  try {
    return !decodeURI(path).includes('*')
  } catch {
    return false
  }
}

/** Accepts placeholders only after the host, because a value must not decide to which server a link leads. */
export function linkTemplate(value: string): string {
  const placeholders = [...value.matchAll(/\{([^{}]*)\}/g)].map(([, name]) => name!)
  if (placeholders.some(name => !LINK_VALUES.includes(name)) || /[{}]/.test(value.replace(/\{[^{}]*\}/g, ''))) {
    throw new Error(`must contain only the placeholders ${LINK_VALUES.map(name => `{${name}}`).join(', ')}`)
  }
  const url = parseWebUrl(value.replace(/\{[^{}]*\}/g, '0'))
  if (!url || !/^https?:\/\/[^/?#{}]+([/?#]|$)/.test(value)) {
    throw new Error('must be an http:// or https:// URL, with placeholders only after the host')
  }
  return value
}

function parseWebUrl(value: string): URL | undefined {
  if (!/^https?:\/\/[^\s\\]+$/.test(value) || !URL.canParse(value)) return undefined
  const url = new URL(value)
  return url.username || url.password ? undefined : url
}

export function emailTypes(value: string): ReadonlySet<NotificationType> {
  if (value === 'none') return new Set()
  const names = value.split(',').map(name => name.trim())
  const types = NOTIFICATION_TYPES.filter(type => names.includes(type))
  if (types.length < new Set(names).size) {
    throw new Error('must be types of notifications such as game_cancelled,game_reminder, or none')
  }
  return new Set(types)
}

/** Accepts a time from 1 second to 24 hours. @returns milliseconds */
export function shortTime(value: string): number {
  const [, count, unit] = /^([1-9]\d{0,4})(h|m|s)$/.exec(value) ?? []
  const ms = Number(count) * ({ h: 3_600_000, m: 60_000, s: 1_000 }[unit as 'h' | 'm' | 's'] ?? Number.NaN)
  if (!(ms <= 86_400_000)) throw new Error('must be a time from 1s to 24h, such as 15m')
  return ms
}

/** Accepts host names and suffixes such as `*.push.example`. A suffix has at least two labels. */
export function pushHosts(value: string): PushHost[] {
  return value
    .split(',')
    .map(item => item.trim().toLowerCase())
    .filter(item => item !== '')
    .map(item => {
      const label = '[a-z0-9](?:[a-z0-9-]*[a-z0-9])?'
      const pattern = new RegExp(`^(?:(\\*\\.)(?=[^.]+\\.))?(${label}(?:\\.${label})*)(?::([1-9]\\d{0,4}))?$`)
      const [, wildcard, name, port = '443'] = pattern.exec(item) ?? []
      if (!name || Number(port) > 65_535) {
        throw new Error('must be host names such as push.example, *.push.example or localhost:8080')
      }
      return { name, isSuffix: wildcard !== undefined, port: Number(port) }
    })
}

/** Accepts a private key of P-256: the base64url of a number from 1 to the order of the curve, without padding. */
export function vapidKey(value: string): string {
  const bytes = Buffer.from(value, 'base64url')
  if (bytes.length !== 32 || bytes.toString('base64url') !== value || !isPrivateKey(bytes)) {
    throw new Error('must be private keys of P-256, 32 bytes in base64url each')
  }
  return value
}

function isPrivateKey(bytes: Buffer): boolean {
  try {
    createECDH('prime256v1').setPrivateKey(bytes)
    return true
  } catch {
    return false
  }
}

/** Refuses localhost, because Apple's push service refuses it. */
export function vapidSubject(value: string): string {
  const isUrl = /^(mailto|https):[^\s,<>]+$/.test(value) && URL.canParse(value)
  const host = isUrl ? findSubjectHost(value) : ''
  if (!host) throw new Error('must be a URL such as mailto:admin@club.example or https://club.example')
  if (isLocalHost(host)) throw new Error('must not be at localhost, because push services refuse it')
  return value
}

/** Returns the host of a `mailto:` or `https:` URL, or an empty string. */
function findSubjectHost(subject: string): string {
  const { protocol, hostname, pathname } = new URL(subject)
  return protocol === 'mailto:' ? (/^[^@]+@([^@]+)$/.exec(pathname)?.[1] ?? '') : hostname
}

function isLocalHost(host: string): boolean {
  return isLoopback(host.replace(/^\[|\]$/g, '')) || /(^|\.)localhost\.?$/i.test(host)
}

/** Returns the subject made from `MAIL_FROM`, and whether push services refuse it. */
export function makeDefaultSubject(mailFrom: string): { subject: string; isLocal: boolean } {
  const address = /<([^<>]+)>$/.exec(mailFrom)?.[1] ?? mailFrom
  return { subject: `mailto:${address}`, isLocal: isLocalHost(address.slice(address.lastIndexOf('@') + 1)) }
}

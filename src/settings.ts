import { DEFAULT_BUDGETS, guessBudgets, signUpLimits } from './code-settings.ts'
import { DEFAULT_SCHEMA } from './db/postgres-url.ts'
import * as reach from './reach-settings.ts'
import {
  cidr,
  duration,
  hostName,
  integer,
  list,
  oneOf,
  optional,
  origin,
  postgresUrl,
  schemaName,
  secret,
  sender,
  shortDelay,
  text,
  timeZone,
  url,
} from './setting-parsers.ts'

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
  WRITE_CONNECTIONS: setting(
    '5',
    'the number of database connections for requests that write; raise the number if commits wait long for the disk or a standby',
    integer(1, 100),
  ),
  DATABASE_SCHEMA: setting(
    DEFAULT_SCHEMA,
    'the schema of the tables; an installation of an earlier version keeps its tables in `public`',
    schemaName,
  ),
  DATA_DIR: setting('./data', 'the folder for the embedded database and the generated secrets', text),
  SMTP_URL: setting(
    '',
    'the URL of the mail server, `smtp://` (port 587) or `smtps://` (port 465); empty: the development mailbox',
    optional(url('smtp', 'smtps')),
  ),
  APP_NAME: setting(
    'Courtside',
    'the name of the app in mails, pushes, the page and the OpenAPI document',
    reach.appName,
  ),
  APP_URL: setting('', 'the address of your app; mails and pushes link to it', optional(reach.baseUrl)),
  LINK_TEMPLATE: setting(
    '',
    "a link made from a notification's data, such as `https://app.example/games/{game_id}`; empty: `APP_URL`",
    optional(reach.linkTemplate),
  ),
  PUBLIC_URL: setting(
    '',
    'the address of this service on the internet, for links that unsubscribe; without it, production sends no mails about unread notifications',
    optional(reach.baseUrl),
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
    // The service trusts every header `X-Forwarded-For` from these addresses.
    list(cidr('list only your own proxies')),
  ),
  SHARED_NETWORKS: setting(
    '',
    'networks that many people share, such as the Wi-Fi of a club: addresses or CIDR ranges with higher limits',
    list(cidr('list only networks whose people you know')),
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
    Object.entries(DEFAULT_BUDGETS)
      .map(([name, count]) => `${name}=${count}`)
      .join(),
    "the numbers of wrong guesses after which strangers' codes get more parts: any of the three, or `off`; " +
      'always off with the development mailbox',
    guessBudgets,
  ),
  SIGN_UP_LIMITS: setting(
    '60,600',
    'the maximum numbers of unfinished sign-ups in an hour, from one network and in the installation, or `off`; ' +
      'always off with the development mailbox',
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
  TERMS_URL: setting('', 'the address of the terms, for the page and mails', optional(url('http', 'https'))),
  SESSION_DAYS: setting('7', 'the number of days after a sign-in at which its session ends', integer(1, 365)),
  EMAIL_TYPES: setting('game_cancelled,game_reminder', 'types that are mailed by default, or `none`', reach.emailTypes),
  EMAIL_AFTER: setting(
    '',
    'the time after which an unread notification causes a mail; empty: `15m`, or `20s` with the development mailbox',
    optional(reach.shortTime),
  ),
  EMAIL_AFTER_URGENT: setting(
    '',
    'the same time for urgent notifications; empty: `2m`, or `20s` with the development mailbox',
    optional(reach.shortTime),
  ),
  PUSH_HOSTS: setting(
    'fcm.googleapis.com,updates.push.services.mozilla.com,*.push.apple.com,*.notify.windows.com',
    'the hosts of push services: names or `*.suffix`, with a port if it is not 443',
    reach.pushHosts,
  ),
  PUSH_CONCURRENCY: setting('16', 'the number of pushes that a worker sends at the same time', integer(1, 1_000)),
  VAPID_PRIVATE_KEY: setting(
    '',
    'P-256 keys for Web Push, the newest first; empty: a key in `DATA_DIR` with the embedded PostgreSQL, otherwise none',
    list(reach.vapidKey),
  ),
  VAPID_SUBJECT: setting(
    '',
    'where push services reach you, a `mailto:` or `https:` URL; empty: the address in `MAIL_FROM`',
    optional(reach.vapidSubject),
  ),
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

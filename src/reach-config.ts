import { isLoopback } from './loopback.ts'
import { makeDefaultSubject } from './reach-settings.ts'
import { MAIL_SETTINGS, SETTINGS, type Setting } from './settings.ts'

type Read = <T>(name: keyof typeof SETTINGS, setting: Setting<T>) => T

/** Returns the members of Config for names, links, preferences, pushes and mails about unread notifications. */
export function readReachSettings(
  read: Read,
  { isDevelopment, mailFrom, timeZone }: { isDevelopment: boolean; mailFrom: string; timeZone: string },
) {
  const [afterMs, afterUrgentMs] = isDevelopment ? [20_000, 20_000] : [15 * 60_000, 2 * 60_000]
  return {
    appName: read('APP_NAME', SETTINGS.APP_NAME),
    /** The addresses from which `src/reach/links.ts` makes the links in mails and pushes. */
    links: {
      template: read('LINK_TEMPLATE', SETTINGS.LINK_TEMPLATE),
      app: read('APP_URL', SETTINGS.APP_URL),
      public: read('PUBLIC_URL', SETTINGS.PUBLIC_URL),
    },
    /** The preferences of a person who has chosen nothing. */
    preferenceDefaults: {
      emailTypes: read('EMAIL_TYPES', SETTINGS.EMAIL_TYPES),
      quietHours: { enabled: !isDevelopment, from: '22:00', to: '08:00' },
      timeZone,
    },
    /** The time after which an unread notification causes a mail. */
    emailAfterMs: read('EMAIL_AFTER', SETTINGS.EMAIL_AFTER) ?? afterMs,
    emailAfterUrgentMs: read('EMAIL_AFTER_URGENT', SETTINGS.EMAIL_AFTER_URGENT) ?? afterUrgentMs,
    pushHosts: read('PUSH_HOSTS', SETTINGS.PUSH_HOSTS),
    pushConcurrency: read('PUSH_CONCURRENCY', SETTINGS.PUSH_CONCURRENCY),
    /** The private keys, the newest first. If the array is empty, only an embedded service has a key, in `dataDir`. */
    vapidPrivateKeys: read('VAPID_PRIVATE_KEY', SETTINGS.VAPID_PRIVATE_KEY),
    vapidSubject: read('VAPID_SUBJECT', SETTINGS.VAPID_SUBJECT) ?? (mailFrom && makeDefaultSubject(mailFrom).subject),
  }
}

/** The settings that the check below needs. After a fault, a value may be undefined. */
type Checked = Pick<ReturnType<typeof readReachSettings>, 'links' | 'vapidPrivateKeys' | 'vapidSubject'> & {
  mailFrom: string
}

/** Finds settings that are fit only for development, in a configuration with a mail server. */
export function findDevelopmentValues({ links, vapidPrivateKeys, vapidSubject, mailFrom }: Checked): string[] {
  const mailSettings = MAIL_SETTINGS.join(' or ')
  const urls = { APP_URL: links.app, LINK_TEMPLATE: links.template, PUBLIC_URL: links.public }
  const faults = Object.entries(urls).flatMap(([name, url]) =>
    url !== undefined && isPlainHttp(url) ? [`${name}: must be an https:// URL with ${mailSettings}`] : [],
  )
  const fallback = mailFrom ? makeDefaultSubject(mailFrom) : undefined
  if (vapidPrivateKeys?.length > 0 && fallback?.isLocal && vapidSubject === fallback.subject) {
    faults.push('VAPID_SUBJECT: required with VAPID_PRIVATE_KEY if MAIL_FROM is at localhost')
  }
  return faults
}

/** Ignores placeholders, because they appear only after the host. */
function isPlainHttp(url: string): boolean {
  const { protocol, hostname } = new URL(url.replace(/[{}]/g, ''))
  return protocol === 'http:' && !isLoopback(hostname.replace(/^\[|\]$/g, ''))
}

import type { Config } from '../config.ts'

type Settings = Pick<Config, 'isDevelopment' | 'links' | 'works' | 'vapidPrivateKeys' | 'databaseUrl'>

/** Returns sentences that tell the operator which messages this process does not send, and which settings it lacks. */
export function findStartWarnings(settings: Settings): string[] {
  const { isDevelopment, links, works, vapidPrivateKeys, databaseUrl } = settings
  if (isDevelopment) return []
  // A process with the embedded database generates its key.
  const hasKey = vapidPrivateKeys.length > 0 || databaseUrl === undefined
  const hasLink = Object.values(links).some(link => link !== undefined)
  const missing = [
    hasKey ? [] : 'VAPID_PRIVATE_KEY',
    hasLink ? [] : 'one of LINK_TEMPLATE, APP_URL and PUBLIC_URL',
  ].flat()
  return [
    ...(missing.length > 0 ? [`this process sends no pushes: they need ${missing.join(', and ')}`] : []),
    // Only workers send mails.
    ...(works && links.public === undefined
      ? ['this process sends no mails about unread notifications: their links that unsubscribe need PUBLIC_URL']
      : []),
  ]
}

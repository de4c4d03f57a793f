import { NOTIFICATION_TYPES } from '../src/notification-types.ts'
import { render } from '../src/notifications/catalogue.ts'

/**
 * Returns the text of `client/src/inbox/english-titles.ts`. The client cannot import the catalogue of the service, so
 * `npm run generate` copies the titles.
 */
export function formatTitles(): string {
  const localTime = { now: new Date(0), timeZone: 'UTC' }
  const lines = NOTIFICATION_TYPES.map(type => `  ${type}: '${render(type, 'en', localTime).title}',\n`)
  return `// This file is generated: npm run generate
import type { Notification } from '../api.ts'

/** The English title of each type of notification. */
export const ENGLISH_TITLES: Record<Notification['type'], string> = {
${lines.join('')}}
`
}

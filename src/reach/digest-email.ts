import { formatNameForMail } from '../accounts/names.ts'
import { html, type Markup } from '../http/format/html.ts'
import { mailPage } from '../http/format/mail-page.ts'
import { isolate, removeFormatControls } from '../http/format/plain-text.ts'
import type { Language } from '../language.ts'
import type { NotificationType } from '../notification-types.ts'
import { UNKNOWN_ACTOR } from '../notifications/catalogue.ts'
import type { UnreadNotification } from '../notifications/unread.ts'
import { LABELS } from './labels.ts'
import { buildLink, type Links } from './links.ts'

/** The maximum number of notifications in a mail. The mail only counts the others. */
const MAX_LISTED = 20

/** The content of a mail about unread notifications, newest first. */
export type Digest = {
  firstName: string
  language: Language
  notifications: readonly UnreadNotification[]
  /** Returns the address of the page that turns off the mails about a type, or all of them. */
  findUnsubscribeUrl: (type?: NotificationType) => string
}

export type DigestTexts = { appName: string; links: Links }

// French typography requires a no-break space before a colon and inside quotation marks.
const TEXTS = {
  fr: {
    subject: (count: number) => `${count} notifications non lues`,
    greeting: (name: string | undefined) => (name ? `Bonjour ${name},` : 'Bonjour,'),
    intro: (appName: string) => `Voici ce que vous n’avez pas encore lu sur ${appName}\u00a0:`,
    others: (count: number) => (count === 1 ? 'et 1 autre' : `et ${count} autres`),
    stopType: (title: string) => `Ne plus recevoir d’e-mail pour «\u00a0${title}\u00a0»`,
    stopAll: (appName: string) => `Ne plus recevoir d’e-mail sur les notifications de ${appName}`,
    colon: '\u00a0:',
  },
  en: {
    subject: (count: number) => `${count} unread notifications`,
    greeting: (name: string | undefined) => (name ? `Hello ${name},` : 'Hello,'),
    intro: (appName: string) => `Here is what you have not read yet on ${appName}:`,
    others: (count: number) => `and ${count} more`,
    stopType: (title: string) => `Stop emails about “${title}”`,
    stopAll: (appName: string) => `Stop all emails about notifications of ${appName}`,
    colon: ':',
  },
} as const

/** A link in the mail, with the text that names it. */
type Link = { text: string; url: string }

/**
 * Returns the subject, the text and the HTML of a mail about unread notifications. A single notification gives the mail
 * its title. The links at the end turn off the mails about one type, or all of them, without a sign-in.
 */
export function composeDigestEmail(digest: Digest, { appName, links }: DigestTexts) {
  const { language, notifications, findUnsubscribeUrl } = digest
  const texts = TEXTS[language]
  const listed = notifications.slice(0, MAX_LISTED)
  const [newest] = listed
  const subject = `${notifications.length === 1 ? newest!.title : texts.subject(notifications.length)} · ${appName}`
  const types = [...new Set(listed.map(({ type }) => type))]
  const stops: Link[] = [
    ...types.map(type => ({ text: texts.stopType(LABELS[type][language]), url: findUnsubscribeUrl(type) })),
    { text: texts.stopAll(appName), url: findUnsubscribeUrl() },
  ]
  const parts = {
    greeting: texts.greeting(formatNameForMail(digest.firstName)),
    intro: texts.intro(appName),
    items: listed.map(notification => ({
      title: notification.title,
      message: formatMessage(notification, language),
      url: buildLink(links, notification.data),
    })),
    others: notifications.length > listed.length ? [texts.others(notifications.length - listed.length)] : [],
    stops,
  }
  const text = [
    parts.greeting,
    parts.intro,
    ...parts.items.map(({ title, message, url }) => [title, message, ...(url ? [url] : [])].join('\n')),
    ...parts.others,
    ['-- ', ...stops.map(({ text: label, url }) => `${label}${texts.colon} ${url}`)].join('\n'),
  ]
  return { subject, text: `${text.join('\n\n')}\n`, html: mailPage(subject, language, composeBody(parts)).text }
}

/** Returns the message of a notification, with the actor's name as `formatNameForMail` allows it. */
function formatMessage({ message, actorNameLength }: UnreadNotification, language: Language): string {
  if (actorNameLength === 0) return message
  const codePoints = [...message]
  // The message isolates a name with a right-to-left letter.
  const name = formatNameForMail(removeFormatControls(codePoints.slice(0, actorNameLength).join('')))
  return (name === undefined ? UNKNOWN_ACTOR[language] : isolate(name)) + codePoints.slice(actorNameLength).join('')
}

type Parts = {
  greeting: string
  intro: string
  items: readonly { title: string; message: string; url: string | undefined }[]
  others: readonly string[]
  stops: readonly Link[]
}

function composeBody({ greeting, intro, items, others, stops }: Parts): Markup {
  return html`<p>${greeting}</p>
<p>${intro}</p>
<ul style="padding-left:20px">
${items.map(
  ({
    title,
    message,
    url,
  }) => html`<li style="margin:0 0 12px"><strong>${url ? html`<a href="${url}">${title}</a>` : title}</strong><br>${message}</li>
`,
)}</ul>
${others.map(
  other => html`<p>${other}</p>
`,
)}<p style="font-size:13px;margin-top:32px">${stops.map(
    ({ text, url }) => html`<a href="${url}">${text}</a><br>
`,
  )}</p>
`
}

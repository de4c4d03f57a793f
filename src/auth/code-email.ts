import { formatNameForMail } from '../accounts/names.ts'
import { html } from '../http/format/html.ts'
import { mailPage } from '../http/format/mail-page.ts'
import { isolate } from '../http/format/plain-text.ts'
import type { Language } from '../language.ts'
import { timeOfDay } from '../time/time-of-day.ts'

/** The name of the app, the time zone of the times in the mail, and the address of the terms, if there is one. */
export type MailTexts = { appName: string; timeZone: string; termsUrl: string | undefined }

/** The purpose and the times of a code, and the name of its account or of its sign-up. */
export type MailedCode = {
  purpose: 'sign_up' | 'sign_in' | 'decoy'
  sent_at: Date
  expires_at: Date
  first_name: string | null
  last_name: string | null
}

const TEXTS = {
  fr: {
    // French typography requires a no-break space before a colon and a question mark.
    subject: (app: string, code: string) => `Votre code ${app}\u00a0: ${code}`,
    inOrder: (first: string, next: string) => `${first}, puis ${next}`,
    greeting: (name: string | undefined) => (name ? `Bonjour ${name},` : 'Bonjour,'),
    intro: (app: string) => `Voici votre code ${app}\u00a0:`,
    introOfParts: 'Votre code a plusieurs parties. Saisissez-les dans cet ordre\u00a0:',
    validity: (from: string, until: string) =>
      `Demandé à ${from}, il est valable jusqu’à ${until} et ne sert qu’une fois.`,
    secrecy: 'Ne le communiquez à personne.',
    account: (name: string | undefined) =>
      `En saisissant ce code, vous créez un compte${name ? ` au nom de ${name}` : ''} et vous acceptez les conditions d’utilisation`,
    ignore: 'Vous n’avez rien demandé\u00a0? Ignorez cet e-mail\u00a0: sans ce code, il ne se passera rien.',
    colon: '\u00a0:',
  },
  en: {
    subject: (app: string, code: string) => `Your ${app} code: ${code}`,
    inOrder: (first: string, next: string) => `${first}, then ${next}`,
    greeting: (name: string | undefined) => (name ? `Hello ${name},` : 'Hello,'),
    intro: (app: string) => `Here is your ${app} code:`,
    introOfParts: 'Your code has several parts. Enter them in this order:',
    validity: (from: string, until: string) => `Requested at ${from}, it is valid until ${until} and works once.`,
    secrecy: 'Do not share it with anyone.',
    account: (name: string | undefined) =>
      `By entering this code, you create an account${name ? ` in the name of ${name}` : ''} and accept the terms`,
    ignore: 'You did not ask for a code? Ignore this email: without the code, nothing will happen.',
    colon: ':',
  },
} as const

/**
 * Returns the subject, the text and the HTML of the mail with a code. The subject contains the code, so users can read
 * the code on a lock screen. Mail programs group mails with equal subjects, and in such a group users easily type the
 * code from an older mail. The code makes the subjects different, so mail programs do not group the mails.
 *
 * The mail names the minute of its request and the end of the code. A user with several mails sees which one is the
 * newest. The mail for a sign-up names the profile and the terms, because the person accepts both with the code.
 * @param code the parts of the code, separated by spaces
 */
export function composeCodeEmail(row: MailedCode, code: string, language: Language, mailTexts: MailTexts) {
  const { timeZone, termsUrl } = mailTexts
  const appName = isolate(mailTexts.appName)
  const texts = TEXTS[language]
  const parts = code.split(' ')
  const shown = parts.slice(1).reduce<string>(texts.inOrder, parts[0]!)
  const firstName = formatNameForMail(row.first_name ?? '')
  const isSignUp = row.purpose === 'sign_up'
  const greeting = texts.greeting(isSignUp ? undefined : firstName)
  const intro = parts.length > 1 ? texts.introOfParts : texts.intro(appName)
  const time = (instant: Date) => timeOfDay(instant, language, timeZone)
  const validity = texts.validity(time(row.sent_at), time(row.expires_at))
  const fullName = [firstName, formatNameForMail(row.last_name ?? '')].filter(name => name !== undefined).join(' ')
  const account = isSignUp ? texts.account(fullName || undefined) : undefined
  const subject = texts.subject(appName, shown)
  const terms = termsUrl === undefined ? '.' : `${texts.colon} ${termsUrl}`
  const text = [
    greeting,
    intro,
    shown,
    `${validity} ${texts.secrecy}`,
    ...(account ? [`${account}${terms}`] : []),
    texts.ignore,
  ]
  const body = html`<p>${greeting}</p>
<p>${intro}</p>
<p style="font:bold 32px/1.2 ui-monospace,Menlo,Consolas,monospace;letter-spacing:0.2em">${shown}</p>
<p>${validity} <strong>${texts.secrecy}</strong></p>
${
  account
    ? html`<p>${account}${termsUrl === undefined ? '.' : html`${texts.colon} <a href="${termsUrl}">${termsUrl}</a>`}</p>
`
    : ''
}<p>${texts.ignore}</p>
`
  return { subject, text: `${text.join('\n\n')}\n`, html: mailPage(subject, language, body).text }
}

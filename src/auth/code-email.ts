import { nameInMail } from '../accounts/names.ts'
import { html } from '../http/format/html.ts'
import type { Language } from '../language.ts'

const TEXTS = {
  fr: {
    // French typography requires a no-break space before a colon and a question mark.
    subject: (code: string) => `Votre code Courtside\u00a0: ${code}`,
    greeting: (name: string | undefined) => (name ? `Bonjour ${name},` : 'Bonjour,'),
    intro: 'Voici votre code\u00a0:',
    // The 15 minutes start at the request, and the mail can arrive much later. So the text says when the 15 minutes
    // start.
    validity: 'Il est valable 15\u00a0minutes à compter de votre demande et ne sert qu’une fois.',
    secrecy: 'Ne le communiquez à personne.',
    ignore: 'Vous n’avez rien demandé\u00a0? Ignorez cet e-mail\u00a0: sans ce code, il ne se passera rien.',
  },
  en: {
    subject: (code: string) => `Your Courtside code: ${code}`,
    greeting: (name: string | undefined) => (name ? `Hello ${name},` : 'Hello,'),
    intro: 'Here is your code:',
    validity: 'It is valid for 15\u00a0minutes from your request and works once.',
    secrecy: 'Do not share it with anyone.',
    ignore: 'You did not ask for a code? Ignore this email: without the code, nothing will happen.',
  },
} as const

/**
 * Returns the subject, the text and the HTML of the mail with a code. The subject contains the code, so users can read
 * the code on a lock screen. Mail programs group mails with equal subjects, and in such a group users easily type the
 * code from an older mail. The code makes the subjects different, so mail programs do not group the mails.
 */
export function codeEmail(code: string, language: Language, firstName: string | null) {
  const texts = TEXTS[language]
  const greeting = texts.greeting(firstName === null ? undefined : nameInMail(firstName))
  const subject = texts.subject(code)
  const text = `${greeting}

${texts.intro}

${code}

${texts.validity} ${texts.secrecy}

${texts.ignore}
`
  // The mail sets no colours, so it is readable on light and dark backgrounds. The mail loads no images.
  const htmlPart = html`<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>${subject}</title>
</head>
<body style="margin:0;padding:24px;font:16px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif">
<p>${greeting}</p>
<p>${texts.intro}</p>
<p style="font:bold 32px/1.2 ui-monospace,Menlo,Consolas,monospace;letter-spacing:0.2em">${code}</p>
<p>${texts.validity} <strong>${texts.secrecy}</strong></p>
<p>${texts.ignore}</p>
</body>
</html>
`
  return { subject, text, html: htmlPart.text }
}

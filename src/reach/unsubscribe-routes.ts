import type { FastifyReply, FastifyRequest } from 'fastify'
import { audit } from '../audit.ts'
import type { Context } from '../context.ts'
import { html, Markup, pagePolicy } from '../http/format/html.ts'
import type { App } from '../http/route.ts'
import { Type } from '../http/type.ts'
import { type Language, preferredLanguage } from '../language.ts'
import { NOTIFICATION_TYPES, type NotificationType } from '../notification-types.ts'
import { LABELS } from './labels.ts'
import { pauseEmail } from './preferences.ts'
import { readUnsubscribeToken, UNSUBSCRIBE_PATH } from './unsubscribe.ts'

const STYLE = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { max-width: 32rem; margin: 3rem auto; padding: 0 1rem }
h1 { font-size: 1.4rem }
button { font: inherit; padding: .5rem 1rem }`

const POLICY = pagePolicy(STYLE, "'self'")

const CONFIG = { access: 'public' } as const
const SCHEMA = {
  hide: true,
  params: Type.Object({ token: Type.String() }),
  querystring: Type.Object({ type: Type.Optional(Type.Enum([...NOTIFICATION_TYPES])) }),
}

const TEXTS = {
  fr: {
    title: 'Ne plus recevoir d’e-mails',
    askAll: (appName: string) => `Ne plus recevoir d’e-mail de ${appName} sur vos notifications non lues\u00a0?`,
    askOne: (appName: string, label: string) =>
      `Ne plus recevoir d’e-mail de ${appName} pour «\u00a0${label}\u00a0»\u00a0?`,
    doneAll: (appName: string) => `Vous ne recevrez plus d’e-mail de ${appName} sur vos notifications non lues.`,
    doneOne: (appName: string, label: string) =>
      `Vous ne recevrez plus d’e-mail de ${appName} pour «\u00a0${label}\u00a0».`,
    confirm: 'Confirmer',
    done: 'C’est fait.',
    codes: 'Les codes de connexion arrivent toujours.',
  },
  en: {
    title: 'Stop these emails',
    askAll: (appName: string) => `Stop all emails of ${appName} about unread notifications?`,
    askOne: (appName: string, label: string) => `Stop the emails of ${appName} about “${label}”?`,
    doneAll: (appName: string) => `${appName} will send you no more emails about unread notifications.`,
    doneOne: (appName: string, label: string) => `${appName} will send you no more emails about “${label}”.`,
    confirm: 'Confirm',
    done: 'Done.',
    codes: 'Sign-in codes still arrive.',
  },
} as const

/**
 * Adds the page behind the links that end every mail about unread notifications. GET changes nothing, because mail
 * scanners follow links. POST turns the mails off. It ignores the body, because mail programs send the body of RFC
 * 8058, and the page sends a form. An unknown token gets the same answers.
 *
 * A proxy may pass the path of PUBLIC_URL on or remove it. So the page is at both paths.
 */
export function unsubscribeRoutes(app: App, { sql, keys, now, config }: Context): void {
  const { appName, links } = config
  const prefixes = new Set(['', links.public === undefined ? '' : toPattern(new URL(links.public).pathname)])
  for (const prefix of prefixes) {
    const url = `${prefix}${UNSUBSCRIBE_PATH}/:token`
    app.get(url, { config: CONFIG, schema: SCHEMA }, async (request, reply) =>
      sendPage(request, reply, { appName, type: request.query.type, isDone: false }),
    )
    app.post(url, { config: { ...CONFIG, needsSlot: true }, schema: SCHEMA }, async (request, reply) => {
      const { type } = request.query
      const userId = readUnsubscribeToken(keys, request.params.token)
      if (userId !== undefined) {
        await pauseEmail(sql, userId, type, now())
        audit(request, 'unsubscribe', { userId })
      }
      return sendPage(request, reply, { appName, type, isDone: true })
    })
  }
}

/** Returns the pattern of a route for a path. The router compares decoded paths. In a pattern, `::` matches a colon. */
function toPattern(path: string): string {
  return decodeURI(path).replace(/\/+$/, '').replaceAll(':', '::')
}

type Page = { appName: string; type: NotificationType | undefined; isDone: boolean }

function sendPage(request: FastifyRequest, reply: FastifyReply, page: Page): string {
  const language = preferredLanguage(request.headers['accept-language'])
  reply.header('content-security-policy', POLICY).header('content-language', language)
  reply.type('text/html; charset=utf-8')
  return composePage(page, language).text
}

/** The form has no attribute `action`, so the browser sends it to the address of the page. */
function composePage({ appName, type, isDone }: Page, language: Language): Markup {
  const texts = TEXTS[language]
  const [one, all] = isDone ? [texts.doneOne, texts.doneAll] : [texts.askOne, texts.askAll]
  const effect = type ? one(appName, LABELS[type][language]) : all(appName)
  const form = html`<form method="post"><button>${texts.confirm}</button></form>`
  return html`<!doctype html>
<html lang="${language}">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="robots" content="noindex">
<title>${texts.title} · ${appName}</title>
<style>${new Markup(STYLE)}</style>
<main>
<h1>${texts.title}</h1>
<p>${isDone ? html`<strong role="status">${texts.done}</strong> ` : ''}${effect} ${texts.codes}</p>
${isDone ? '' : form}
</main>
</html>
`
}

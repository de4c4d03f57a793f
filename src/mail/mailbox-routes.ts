import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { notFound } from '../errors.ts'
import { html, Markup, pagePolicy } from '../http/format/html.ts'
import { timestamp } from '../http/format/timestamp.ts'
import { isDevelopmentRequest } from '../http/local.ts'
import { Type } from '../http/type.ts'
import type { KeptMail, Mailbox } from './mailbox.ts'

const STYLE = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { max-width: 44rem; margin: 2rem auto; padding: 0 1rem }
article { border-top: 1px solid; padding: 1rem 0 }
h2 { font-size: 1.1rem; margin: 0 }
p { margin: .25rem 0 }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: .95rem }`

const POLICY = pagePolicy(STYLE)

const CONFIG = { access: 'public', unlisted: true } as const

const Mails = Type.Array(
  Type.Object({
    to: Type.String(),
    subject: Type.String(),
    text: Type.String(),
    html: Type.String(),
    headers: Type.Optional(Type.Record(Type.String(), Type.String())),
    sent_at: Type.String({ format: 'date-time' }),
  }),
)

/**
 * Adds the development mailbox: `/dev/mailbox` for people and `/dev/mailbox.json` for programs. Both routes list the
 * newest mail first. The mailbox shows the codes of all users. So a client on another machine, or without the key of
 * the mailbox, gets the same 404 as for an unknown path.
 */
export async function mailboxRoutes(app: FastifyInstance, { mailbox }: { mailbox: Mailbox }): Promise<void> {
  app.addHook('onRequest', async (request: FastifyRequest, reply: FastifyReply) => {
    if (!isDevelopmentRequest(request, mailbox.key)) throw notFound()
    reply.header('cache-control', 'no-store')
  })

  app.get('/dev/mailbox', { config: CONFIG, schema: { hide: true } }, async (_request, reply) => {
    reply.header('content-security-policy', POLICY).type('text/html; charset=utf-8')
    return page(mailbox).text
  })

  app.get('/dev/mailbox.json', { config: CONFIG, schema: { hide: true, response: { 200: Mails } } }, async () =>
    mailbox.latest().map(({ sentAt, ...mail }) => ({ ...mail, sent_at: timestamp(sentAt) })),
  )
}

function page({ key, latest }: Mailbox): Markup {
  const mails = latest()
  return html`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Mailbox (${mails.length})</title>
<style>${new Markup(STYLE)}</style>
<h1>Development mailbox</h1>
<p>The latest mails, newest first. None of these mails was sent. <a href="/dev/mailbox?key=${key}">Reload</a> ·
<a href="/dev/mailbox.json?key=${key}">JSON</a></p>
${mails.length === 0 ? html`<p>No mail yet.</p>` : mails.map(entry)}
</html>
`
}

function entry({ to, subject, text, html: source, sentAt }: KeptMail): Markup {
  return html`<article>
<h2>${subject}</h2>
<p>To ${to} · <time datetime="${timestamp(sentAt)}">${timestamp(sentAt)}</time></p>
<pre>${text}</pre>
<details><summary>Source of the HTML part</summary><pre>${source}</pre></details>
</article>
`
}

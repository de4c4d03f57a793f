import { readFile } from 'node:fs/promises'
import { sendCopy, tagOf } from './copies.ts'
import { pagePolicy } from './html.ts'
import { openapiDocument } from './openapi.ts'
import { referencePage } from './reference-page.ts'
import type { App } from './route.ts'

const ROUTE = { config: { access: 'public' }, schema: { hide: true } } as const

/** `/api/v1/openapi.json` and `/docs`, the same for people. Both are made when first asked for, and kept. */
export function referenceRoutes(app: App): void {
  const json = once(async () => withTag(JSON.stringify(await openapiDocument(app))))
  const page = once(async () => {
    const style = await readFile(new URL('reference.css', import.meta.url), 'utf8')
    return { ...withTag(referencePage(await openapiDocument(app), style)), policy: pagePolicy(style, 'img-src data:') }
  })

  app.get('/api/v1/openapi.json', ROUTE, async (request, reply) => {
    const { text, tag } = await json()
    reply.type('application/json; charset=utf-8')
    return sendCopy(request, reply, text, tag)
  })

  app.get('/docs', ROUTE, async (request, reply) => {
    const { text, tag, policy } = await page()
    reply.header('content-security-policy', policy).type('text/html; charset=utf-8')
    return sendCopy(request, reply, text, tag)
  })
}

function withTag(text: string) {
  return { text, tag: tagOf(text) }
}

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined
  return () => {
    made ??= make()
    return made
  }
}

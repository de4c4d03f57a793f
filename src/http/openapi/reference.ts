import { readFile } from 'node:fs/promises'
import { computeEtag, sendWithEtag } from '../format/etag.ts'
import { pagePolicy } from '../format/html.ts'
import type { App } from '../route.ts'
import { openapiDocument } from './document.ts'
import { referencePage } from './reference-page.ts'

const ROUTE = { config: { access: 'public' }, schema: { hide: true } } as const

/** `/api/v1/openapi.json` and `/docs`, the same for people. Both are made when first asked for, and kept. */
export function referenceRoutes(app: App): void {
  const json = once(async () => withEtag(JSON.stringify(await openapiDocument(app))))
  const page = once(async () => {
    const style = await readFile(new URL('reference.css', import.meta.url), 'utf8')
    return { ...withEtag(referencePage(await openapiDocument(app), style)), policy: pagePolicy(style, 'img-src data:') }
  })

  app.get('/api/v1/openapi.json', ROUTE, async (request, reply) => {
    const { text, etag } = await json()
    reply.type('application/json; charset=utf-8')
    return sendWithEtag(request, reply, text, etag)
  })

  app.get('/docs', ROUTE, async (request, reply) => {
    const { text, etag, policy } = await page()
    reply.header('content-security-policy', policy).type('text/html; charset=utf-8')
    return sendWithEtag(request, reply, text, etag)
  })
}

function withEtag(text: string) {
  return { text, etag: computeEtag(text) }
}

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined
  return () => {
    made ??= make()
    return made
  }
}

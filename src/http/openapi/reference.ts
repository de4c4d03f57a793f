import { readFile } from 'node:fs/promises'
import { computeEtag, sendWithEtag } from '../format/etag.ts'
import { fillPage } from '../format/html.ts'
import type { App } from '../route.ts'
import { openapiDocument } from './document.ts'

const ROUTE = { config: { access: 'public' }, schema: { hide: true } } as const

const HTML = 'text/html; charset=utf-8'
const SCRIPT = 'text/javascript; charset=utf-8'
const STYLE = 'text/css; charset=utf-8'

/** The files of the page at `/docs`. Other files of the package swagger-ui-dist are not served. */
const FILES = [
  { path: '/docs', type: HTML, specifier: './page/index.html' },
  { path: '/docs/start.js', type: SCRIPT, specifier: './page/start.js' },
  { path: '/docs/swagger-ui-bundle.js', type: SCRIPT, specifier: 'swagger-ui-dist/swagger-ui-bundle.js' },
  { path: '/docs/swagger-ui.css', type: STYLE, specifier: 'swagger-ui-dist/swagger-ui.css' },
]

/**
 * The Content-Security-Policy of the page at `/docs`. Swagger UI needs no inline scripts, no inline styles and no
 * `eval`. The style sheet of Swagger UI contains icons as `data:` URLs.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/**
 * Adds `/api/v1/openapi.json`, which returns the OpenAPI document, and the page `/docs`, which shows the document. To
 * keep startup fast, the service creates the document only when a client requests it for the first time. It also reads
 * each file of the page only at the first request for this file. Later requests get the stored content.
 * @param appName the name in the title of the page
 */
export function referenceRoutes(app: App, appName: string): void {
  const type = 'application/json; charset=utf-8'
  const loadDocument = async () => Buffer.from(JSON.stringify(await openapiDocument(app)))
  serve(app, { path: '/api/v1/openapi.json', type, load: loadDocument })
  for (const { path, type, specifier } of FILES) {
    const load = async () => {
      const content = await readFile(new URL(import.meta.resolve(specifier)))
      return type === HTML ? fillPage(content, { app_name: appName }) : content
    }
    serve(app, { path, type, policy: POLICY, load })
  }
}

type Resource = { path: string; type: string; policy?: string; load(): Promise<Buffer> }

function serve(app: App, { path, type, policy, load }: Resource): void {
  const loadOnce = once(async () => {
    const content = await load()
    return { content, etag: computeEtag(content) }
  })
  app.get(path, ROUTE, async (request, reply) => {
    const { content, etag } = await loadOnce()
    if (policy) reply.header('content-security-policy', policy)
    reply.type(type)
    return sendWithEtag(request, reply, content, etag)
  })
}

/**
 * Returns a function that calls `load` at its first call, and returns the stored result at all later calls. If `load`
 * fails, the next call of the function calls `load` once more.
 */
function once<T>(load: () => Promise<T>): () => Promise<T> {
  let loaded: Promise<T> | undefined
  return () => {
    loaded ??= load().catch(error => {
      loaded = undefined
      throw error
    })
    return loaded
  }
}

import type { FastifyBaseLogger } from 'fastify'
import { sendWithEtag } from '../http/format/etag.ts'
import type { App } from '../http/route.ts'
import { type File, type PageValues, readFiles } from './files.ts'

// This policy allows only files from our own origin, and no inline scripts or styles. Trusted Types prevent our scripts
// from inserting plain text as markup or as a script.
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "manifest-src 'self'",
  "worker-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join('; ')

/** Adds the page at `/`, its files below `/web/`, and the built modules of the client below `/client/`. */
export async function webRoutes(app: App, log: FastifyBaseLogger, values: PageValues): Promise<void> {
  const files = await readFiles(values).catch(error => {
    // `npm ci --omit=dev` does not install the compiler that builds the client. The API works without the page.
    if (error.code !== 'ENOENT') throw error
    log.warn(
      'there is no page at /, because client/dist is missing: after `npm ci`, run `npm run build`, and only then ' +
        'remove the compiler with `npm prune --omit=dev`',
    )
    return []
  })
  for (const file of files) serve(app, file)
}

function serve(app: App, { path, type, content, etag }: File): void {
  app.get(path, { config: { access: 'public' }, schema: { hide: true } }, async (request, reply) => {
    reply.header('content-security-policy', POLICY).type(type)
    return sendWithEtag(request, reply, content, etag)
  })
}

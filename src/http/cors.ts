/** The headers of answers that web pages of other origins may read. */
export const EXPOSED_HEADERS = [
  'Retry-After',
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
  'RateLimit',
  'RateLimit-Policy',
  'X-Request-Id',
]

/** Returns the CORS headers of an answer that Fastify sends without hooks, and so without the CORS plugin. */
export function buildCorsHeaders(allowed: readonly string[], origin: string | undefined): Record<string, string> {
  if (allowed.length === 0) return {}
  return {
    vary: 'Origin',
    'access-control-expose-headers': EXPOSED_HEADERS.join(', '),
    ...(origin !== undefined && allowed.includes(origin) && { 'access-control-allow-origin': origin }),
  }
}

// If possible, call these functions before a run. During a run, they would take CPU time from the measured programs.

/** Returns a complete GET request. */
export function get(path: string, token: string): string {
  return `GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\n\r\n`
}

/** Returns a complete DELETE request. */
export function del(path: string, token: string): string {
  return get(path, token).replace(/^GET/, 'DELETE')
}

/**
 * Returns a complete POST request.
 * @param token the bearer token; undefined for a request without a token
 */
export function post(
  path: string,
  body: unknown,
  token: string | undefined,
  moreHeaders: Record<string, string> = {},
): string {
  const text = body === undefined ? '' : JSON.stringify(body)
  const headers = {
    Host: 'localhost',
    ...(token !== undefined && { Authorization: `Bearer ${token}` }),
    ...(body !== undefined && { 'Content-Type': 'application/json' }),
    'Content-Length': String(Buffer.byteLength(text)),
    ...moreHeaders,
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  return `POST ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${text}`
}

/** Returns the HTTP header in which a proxy names its client, with a random address from 10.0.0.0/8. */
export function randomClientHeader(): Record<string, string> {
  const byte = () => Math.floor(Math.random() * 256)
  return { 'X-Forwarded-For': `10.${byte()}.${byte()}.${byte()}` }
}

export function pickRandom<T>(items: readonly T[]): T {
  return items[Math.floor(Math.random() * items.length)]!
}

/** Requests as bytes, made once where they can be: making them anew would be the generator's own work. */
export function get(path: string, token: string): string {
  return `GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\n\r\n`
}

/** @param token undefined for none */
export function post(
  path: string,
  body: unknown,
  token: string | undefined,
  more: Record<string, string> = {},
): string {
  const text = body === undefined ? '' : JSON.stringify(body)
  const headers = {
    Host: 'localhost',
    ...(token !== undefined && { Authorization: `Bearer ${token}` }),
    ...(body !== undefined && { 'Content-Type': 'application/json' }),
    'Content-Length': String(Buffer.byteLength(text)),
    ...more,
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  return `POST ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${text}`
}

/** An address out of the sixteen million of 10/8, as a proxy would tell it. */
export function randomClientHeader(): Record<string, string> {
  const byte = () => Math.floor(Math.random() * 256)
  return { 'X-Forwarded-For': `10.${byte()}.${byte()}.${byte()}` }
}

export function pickRandom<T>(items: readonly T[]): T {
  return items[Math.floor(Math.random() * items.length)]!
}

export type Host = { host: string; port: number }

// As in `URL`, a user or password may contain `:` and `,` but must percent-encode `@`, `/` and `?`.
const POSTGRES_URL = /^(postgres(?:ql)?:\/\/(?:[^\s@/?]*@)?)([^\s/?]*)((?:[/?]\S*)?)$/i
// A name, an IPv4 address, an IPv6 address in brackets, or nothing: then `?host=` may name the folder of a socket.
const HOST = /^(?:\[([\da-f:.]+)\]|([^\s:,/?@[\]]*))(?::(\d{1,5}))?$/i

/**
 * Reads a PostgreSQL URL that may name several hosts, which neither `URL` nor pg accepts:
 * `postgres://user:password@one:5432,two/db`.
 * @returns the hosts in their order, and the same URL with the first host alone, which pg can read
 * @throws a sentence without its subject, as the parsers of `settings.ts` do
 */
export function parsePostgresUrl(url: string): { hosts: Host[]; firstHostUrl: string } {
  const [, before, list, after] = POSTGRES_URL.exec(url) ?? []
  const names = list?.split(',') ?? []
  const hosts = names.map(parseHost).filter(host => host !== undefined)
  if (names.length === 0 || hosts.length < names.length) throw new Error('must be a postgres:// URL')
  return { hosts, firstHostUrl: `${before}${names[0]}${after}` }
}

function parseHost(text: string): Host | undefined {
  const match = HOST.exec(text)
  if (!match) return undefined
  const [, bracketed, plain, port] = match
  return { host: (bracketed ?? plain)!, port: Number(port ?? 5432) }
}

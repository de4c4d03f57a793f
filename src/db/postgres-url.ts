export type Host = { host: string; port: number }

// As in `URL`, a user name or password may contain `:` and `,` but must percent-encode `@`, `/` and `?`.
const POSTGRES_URL = /^(postgres(?:ql)?:\/\/(?:[^\s@/?]*@)?)([^\s/?]*)((?:[/?]\S*)?)$/i
// A host is a name, an IPv4 address or an IPv6 address in brackets. If the host is empty, `?host=` may name the folder
// of a socket.
const HOST = /^(?:\[([\da-f:.]+)\]|([^\s:,/?@[\]]*))(?::(\d{1,5}))?$/i

/**
 * Parses a PostgreSQL URL that may name several hosts: `postgres://user:password@one:5432,two/db`. Neither `URL` nor pg
 * can parse such a URL.
 * @returns the hosts in their order, and the same URL with only the first host, which pg can parse
 * @throws an error such as "must be a postgres:// URL". Like the parsers in `settings.ts`, it does not name the setting
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

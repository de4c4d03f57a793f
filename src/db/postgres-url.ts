export type Host = { host: string; port: number }
type PostgresUrl = { hosts: Host[]; firstHostUrl: string; requiresScram: boolean; schema: string }

/** The schema of a new installation. */
export const DEFAULT_SCHEMA = 'courtside'

// As in `URL`, a user name or password may contain `:` and `,` but must percent-encode `@`, `/` and `?`.
const POSTGRES_URL = /^(postgres(?:ql)?:\/\/(?:[^\s@/?]*@)?)([^\s/?]*)((?:[/?]\S*)?)$/i
// A host is a name, an IPv4 address or an IPv6 address in brackets. If the host is empty, `?host=` may name the folder
// of a socket.
const HOST = /^(?:\[([\da-f:.]+)\]|([^\s:,/?@[\]]*))(?::(\d{1,5}))?$/i

/**
 * Parses a PostgreSQL URL that may name several hosts: `postgres://user:password@one:5432,two/db`. Neither `URL` nor pg
 * can parse such a URL.
 * @returns the hosts in their order, and the same URL with only the first host, which pg can parse. `requiresScram` is
 *   true if the URL has libpq's parameter `require_auth=scram-sha-256`, which pg does not know. `schema` is the schema
 *   of our tables, which `findSchema` adds to the URL
 * @throws an error such as "must be a postgres:// URL". Like the parsers in `settings.ts`, it does not name the setting
 */
export function parsePostgresUrl(url: string): PostgresUrl {
  const [, before, list, after] = POSTGRES_URL.exec(url) ?? []
  const names = list?.split(',') ?? []
  const hosts = names.map(parseHost).filter(host => host !== undefined)
  if (names.length === 0 || hosts.length < names.length) throw new Error('must be a postgres:// URL')
  const firstHostUrl = `${before}${names[0]}${after}`
  if (!isParsable(firstHostUrl)) {
    throw new Error('must percent-encode special characters in the user name and password, such as %25 for %')
  }
  const parameters = new URLSearchParams(after!.split('?')[1])
  const methods = parameters.getAll('require_auth')
  if (methods.some(method => method !== 'scram-sha-256')) throw new Error('require_auth must be scram-sha-256')
  const schema = parameters.getAll('schema').at(-1) ?? DEFAULT_SCHEMA
  return { hosts, firstHostUrl, requiresScram: methods.length > 0, schema }
}

/** Returns whether pg can parse a URL with one host. pg would throw "Invalid URL" when it connects. */
function isParsable(url: string): boolean {
  if (url.includes('#') || !URL.canParse(url.replace('@/', '@host/'), 'postgres://host')) return false
  try {
    decodeURIComponent(url)
    return true
  } catch {
    return false
  }
}

function parseHost(text: string): Host | undefined {
  const match = HOST.exec(text)
  if (!match) return undefined
  const [, bracketed, plain, port] = match
  if (Number(port ?? 0) > 65_535) return undefined
  return { host: (bracketed ?? plain)!, port: Number(port ?? 5432) }
}

import { domainToASCII } from 'node:url'

const MAX_LENGTH = 254
const MAX_LOCAL_LENGTH = 64

// RFC 5321's dot-string: atoms of RFC 5322's atext, in ASCII, without quotes.
const LOCAL = /^[a-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/i
const DOMAIN = /^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/

/**
 * The one spelling under which an address is stored, so that two spellings of one address are one account: lower case, an
 * internationalised domain as punycode. Undefined when it isn't an address that we take.
 */
export function canonicalEmail(written: string): string | undefined {
  const at = written.lastIndexOf('@')
  const local = written.slice(0, at)
  // The alphabet is checked before the case is folded: folding turns other letters (the Kelvin sign) into ASCII ones.
  if (at < 1 || local.length > MAX_LOCAL_LENGTH || !LOCAL.test(local)) return undefined
  const domain = canonicalDomain(written.slice(at + 1))
  if (domain === undefined) return undefined
  const address = `${local.toLowerCase()}@${domain}`
  return address.length > MAX_LENGTH ? undefined : address
}

function canonicalDomain(written: string): string | undefined {
  // What `domainToASCII` would read as something else than a domain's letters: percent escapes, ports, brackets, spaces.
  if (/[\s%:/?#@[\]\\<>^|]/.test(written)) return undefined
  const domain = domainToASCII(written)
  // A numeric last label makes it an IPv4 address, in one of its many spellings.
  if (!DOMAIN.test(domain) || /(^|\.)\d+$/.test(domain)) return undefined
  return domain
}

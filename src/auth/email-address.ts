import { domainToASCII } from 'node:url'

const MAX_LENGTH = 254
const MAX_LOCAL_LENGTH = 64

// The dot-string of RFC 5321: ASCII atoms of RFC 5322, without quotes.
const LOCAL = /^[a-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/i
const DOMAIN = /^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/

/**
 * Returns the spelling under which an address is stored: lower case, and an internationalised domain as punycode. So
 * two spellings of one address are one account. Returns undefined if the address is not acceptable.
 */
export function canonicalEmail(input: string): string | undefined {
  const at = input.lastIndexOf('@')
  const local = input.slice(0, at)
  // Check the alphabet before folding the case: folding turns other letters (the Kelvin sign) into ASCII letters.
  if (at < 1 || local.length > MAX_LOCAL_LENGTH || !LOCAL.test(local)) return undefined
  const domain = canonicalDomain(input.slice(at + 1))
  if (domain === undefined) return undefined
  const address = `${local.toLowerCase()}@${domain}`
  return address.length > MAX_LENGTH ? undefined : address
}

function canonicalDomain(input: string): string | undefined {
  // `domainToASCII` would decode or cut these: percent escapes, ports, brackets, spaces.
  if (/[\s%:/?#@[\]\\<>^|]/.test(input)) return undefined
  const domain = domainToASCII(input)
  // A domain with a numeric last label is an IPv4 address.
  if (!DOMAIN.test(domain) || /(^|\.)\d+$/.test(domain)) return undefined
  return domain
}

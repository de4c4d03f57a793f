import { domainToASCII } from 'node:url'

const MAX_LENGTH = 254
const MAX_LOCAL_LENGTH = 64

// The `Dot-string` of RFC 5321: ASCII atoms that are separated by dots, without quotes.
const LOCAL = /^[a-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/i
const DOMAIN = /^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/

/**
 * Returns the spelling in which an address is stored: in lower case, with an internationalised domain as punycode. So
 * all spellings of an address belong to one account.
 * @returns undefined if the address is invalid
 */
export function canonicalEmail(input: string): string | undefined {
  const at = input.lastIndexOf('@')
  const local = input.slice(0, at)
  // The conversion to lower case turns some non-ASCII letters, such as the Kelvin sign, into ASCII letters. So we check
  // the local part before the conversion, while these letters are still recognizable.
  if (at < 1 || local.length > MAX_LOCAL_LENGTH || !LOCAL.test(local)) return undefined
  const domain = canonicalDomain(input.slice(at + 1))
  if (domain === undefined) return undefined
  const address = `${local.toLowerCase()}@${domain}`
  return address.length > MAX_LENGTH ? undefined : address
}

function canonicalDomain(input: string): string | undefined {
  // `domainToASCII` decodes percent escapes, and cuts off ports, brackets and spaces, instead of refusing them. So we
  // refuse a domain with these characters here.
  if (/[\s%:/?#@[\]\\<>^|]/.test(input)) return undefined
  const domain = domainToASCII(input)
  // If the last label of a domain is numeric, URL parsers read the domain as an IPv4 address. So we refuse such a
  // domain.
  if (!DOMAIN.test(domain) || /(^|\.)\d+$/.test(domain)) return undefined
  return domain
}

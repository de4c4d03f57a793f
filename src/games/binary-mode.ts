import type { IncomingHttpHeaders } from 'node:http'
import { type AppError, type Fields, invalid } from '../errors.ts'
import { forbiddenCharacterError, mediaType } from '../http/body.ts'
import type { Text } from '../language.ts'

// The CloudEvents attributes that the intake reads. In the binary mode, each attribute is a header such as `ce-id`.
const ATTRIBUTES = ['specversion', 'id', 'source', 'type', 'time']

/**
 * Returns whether a request is in the binary mode of the HTTP binding of CloudEvents: the attributes are headers, and
 * the body is only `data`. "If the Content-Type … is application/cloudevents", the mode is another one. A request
 * without any of the headers is in the structured mode, because producers may send whole events as `application/json`.
 */
export function isBinaryMode(headers: IncomingHttpHeaders): boolean {
  if (mediaType(headers['content-type']).startsWith('application/cloudevents')) return false
  return ATTRIBUTES.some(name => `ce-${name}` in headers)
}

/**
 * Reads a request in the binary mode.
 * @param rawHeaders names and values in turn, as in Node's `rawHeaders`
 * @param data the body
 * @returns the event as in the structured mode, or an error. `nameHeaders` names the headers in the error
 */
export function readBinaryEvent(rawHeaders: readonly string[], data: unknown): Record<string, unknown> | AppError {
  const event: Record<string, unknown> = {}
  const fields: Fields = {}
  for (const name of ATTRIBUTES) {
    const header = `ce-${name}`
    const values = rawHeaders.filter((_, index) => index % 2 === 1 && rawHeaders[index - 1]!.toLowerCase() === header)
    const value = values.length > 1 ? severalValues(header) : values.map(text => decode(header, text))[0]
    if (typeof value === 'object') fields[header] = [value]
    else if (value !== undefined) event[name] = value
  }
  if (Object.keys(fields).length > 0) return invalid(fields)
  return forbiddenCharacterError(event) ?? forbiddenCharacterError({ data }) ?? { ...event, data }
}

/**
 * Returns the error with the names of headers instead of the names of attributes, because a producer in the binary mode
 * knows these names.
 */
export function nameHeaders(error: AppError): AppError {
  const entries = Object.entries(error.fields ?? {}).map(([field, texts]): [string, Text[]] =>
    ATTRIBUTES.includes(field) ? [`ce-${field}`, texts.map(text => nameHeader(text, field))] : [field, texts],
  )
  return entries.length > 0 ? invalid(Object.fromEntries(entries), error.code) : error
}

function nameHeader({ fr, en }: Text, field: string): Text {
  return {
    fr: fr.replace(`Le champ ${field} `, `L’en-tête ce-${field} `),
    en: en.replace(`The ${field} field `, `The ce-${field} header `),
  }
}

/**
 * Decodes the value of a header. The HTTP binding 1.0.2, section 3.1.3.2, requires to unescape a quoted string first,
 * and then "a single round of percent-decoding".
 */
function decode(header: string, value: string): string | Text {
  const quoted = /^"((?:[^"\\]|\\.)*)"$/.exec(value)?.[1]
  const text = quoted === undefined ? value : quoted.replace(/\\(.)/g, '$1')
  // Node reads the bytes of headers as Latin-1, so other characters must be encoded.
  if (/[^\t\x20-\x7e]/.test(text)) return notEncoded(header)
  try {
    return decodeURIComponent(text)
  } catch {
    return notEncoded(header)
  }
}

function severalValues(header: string): Text {
  return { fr: `L’en-tête ${header} a plusieurs valeurs.`, en: `The ${header} header has several values.` }
}

function notEncoded(header: string): Text {
  return {
    fr: `L’en-tête ${header} doit être en UTF-8, codé avec des signes pour cent.`,
    en: `The ${header} header must be percent-encoded UTF-8.`,
  }
}

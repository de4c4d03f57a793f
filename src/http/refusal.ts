import { randomUUID } from 'node:crypto'
import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http'
import { isIPv6 } from 'node:net'
import type { Code } from '../errors.ts'
import type { Failure } from './failure.ts'
import { STATUS_CODES } from './format/status.ts'

const METHODS = new Set(process.getBuiltinModule('node:http').METHODS)

/**
 * The answer to a request that is not valid HTTP. Such a request does not reach Fastify, and the connection closes
 * after the answer.
 */
export type Refusal = { status: number; code: Code }

const BAD_REQUEST: Refusal = { status: 400, code: 'validation_failed' }

export const CONNECT_REFUSED: Refusal = { status: 405, code: 'method_not_allowed' }

/** Returns the answer for a request that Node's HTTP parser could not read, or that came too slowly. */
export function toRefusal(error: NodeJS.ErrnoException): Refusal {
  if (error.code === 'HPE_HEADER_OVERFLOW') return { status: 431, code: 'payload_too_large' }
  if (error.code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW') return { status: 413, code: 'payload_too_large' }
  return error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? { ...BAD_REQUEST, status: 408 } : BAD_REQUEST
}

/** Checks what Node's HTTP parser does not check. @returns undefined if the head of the request is valid HTTP */
export function refuseHead({ method, url, httpVersion, headers, rawHeaders }: IncomingMessage): Refusal | undefined {
  // The parser also reads the methods of RTSP, such as PLAY.
  if (!METHODS.has(method!)) return BAD_REQUEST
  // A target has no fragment (RFC 9112 §3.2). The router would ignore it, but a proxy may compare the whole target.
  if (url!.includes('#')) return BAD_REQUEST
  const coding = headers['transfer-encoding']
  // The parser accepts other codings before `chunked`, but nothing here decodes them (RFC 9112 §6.1).
  if (coding !== undefined && (coding.toLowerCase() !== 'chunked' || httpVersion === '1.0')) return BAD_REQUEST
  // RFC 9112 §3.2: a request with HTTP/1.1 has exactly one Host header, and its value is valid.
  let count = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!
    if (name.length === 4 && name.toLowerCase() === 'host') count += 1
  }
  if (count > 1 || (count === 0 && httpVersion !== '1.0')) return BAD_REQUEST
  return isHost(headers.host ?? '') ? undefined : BAD_REQUEST
}

/**
 * Returns whether the value of a Host header is `uri-host [ ":" port ]`, as RFC 9110 §7.2 and RFC 3986 §3.2 define it.
 */
function isHost(value: string): boolean {
  const [, literal] = /^\[(.*)\](?::\d*)?$/.exec(value) ?? []
  if (literal !== undefined) return isIPv6(literal) && !literal.includes('%')
  return /^(?:[\w.~!$&'()*+,;=-]|%[\da-f]{2})*(?::\d*)?$/i.test(value)
}

/** Returns the headers and the body of a refusal. The body has the same shape as the body of every other error. */
export function describeRefusal({ status, code }: Refusal): { headers: OutgoingHttpHeaders; body: string } {
  const body = JSON.stringify({ message: STATUS_CODES[status]!, code } satisfies Failure)
  return {
    headers: {
      connection: 'close',
      'content-type': 'application/json; charset=utf-8',
      'content-length': Buffer.byteLength(body),
      'x-request-id': randomUUID(),
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      // A 405 must have this header. The empty list says that there is no other method for this target.
      ...(status === 405 && { allow: '' }),
    },
    body,
  }
}

/** Returns the bytes of a refusal, for a socket without a response object. */
export function formatRefusal(refusal: Refusal): string {
  const { headers, body } = describeRefusal(refusal)
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}\r\n${lines.join('')}\r\n${body}`
}

import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyRequest } from 'fastify'
import { AppError, invalid } from '../errors.ts'
import type { Text } from '../language.ts'
import { sendContinue } from './expect.ts'

/**
 * The rule by which a route reads the body of a request. A route that reads no body ignores the body and the
 * content type of a request.
 */
export type BodyRule = {
  maxBytes: number
  /** The route accepts bodies of these media types. The types are in lower case and have no parameters. */
  types: readonly string[]
  /**
   * The media type of a list of items, if the route accepts such a list and returns a result for each item. `types`
   * must also contain this media type. `maxBytes` is the size limit of the list. The route itself calls
   * `forbiddenCharacterError` for each item, so a refused item does not affect the other items.
   */
  batch?: { type: string; maxBytes: number }
  /**
   * Returns whether the body is only a part of the input, and headers contain the other parts. Such a body may have
   * any JSON media type. The route itself calls `forbiddenCharacterError`, so the error can name the whole path.
   */
  isPart?(headers: IncomingHttpHeaders): boolean
  /** Whether the route treats a body that it cannot read as an absent body. */
  lenient?: boolean
}

export const JSON_BODY: BodyRule = { maxBytes: 64 * 1024, types: ['application/json'] }

/** Reads the body of a request as `readBody` does. If the rule is lenient, a body with a fault counts as absent. */
export async function readBodyByRule(request: FastifyRequest, payload: NodeJS.ReadableStream, rule: BodyRule) {
  try {
    return await readBody(request, payload, rule)
  } catch (error) {
    if (rule.lenient && error instanceof AppError) return undefined
    throw error
  }
}

/**
 * Reads a JSON body. Resolves to undefined if the body is empty.
 * @throws AppError 413 if the body is too large; `readBody` checks the size first
 * @throws AppError 415 if the body is compressed, or if its media type is not accepted
 * @throws AppError 422 if the body is not UTF-8 or not JSON
 * @throws AppError 422 if the body contains NUL (which PostgreSQL cannot store) or a lone surrogate (which UTF-8 cannot
 *   encode)
 */
async function readBody(request: FastifyRequest, payload: NodeJS.ReadableStream, rule: BodyRule) {
  const type = mediaType(request.headers['content-type'])
  const batch = type === rule.batch?.type ? rule.batch : undefined
  const bytes = await readBytes(request, payload, (batch ?? rule).maxBytes)
  if (bytes.length === 0) return undefined
  if (isCompressed(request)) throw compressed()
  const isPart = rule.isPart?.(request.headers) === true
  if (isPart ? !isJson(type) : !rule.types.includes(type)) throw wrongType(isPart ? 'application/json' : rule.types[0]!)
  const { text, value } = parse(bytes)
  // `parse` refuses NUL and lone surrogates, unless the body contains them as escapes such as `\u0000`. So only a body
  // with such escapes needs this check.
  const error = !batch && !isPart && text.includes('\\u') ? forbiddenCharacterError(value) : undefined
  if (error) throw error
  // The validation, which runs after `readBody`, would treat null as an absent body. So we refuse null here.
  if (value === null && !batch && !isPart) throw invalid({ body: [NOT_AN_OBJECT] })
  return value
}

export const NOT_AN_OBJECT: Text = { fr: 'Le corps doit être un objet JSON.', en: 'The body must be a JSON object.' }

/**
 * Returns the media type from a Content-Type header in lower case, without parameters. Returns an empty string if there
 * is no header.
 */
export function mediaType(contentType: string | undefined): string {
  return (contentType ?? '').split(';', 1)[0]!.trim().toLowerCase()
}

/** Returns whether a media type is JSON, such as `application/json` or `application/vnd.club+json`. */
function isJson(type: string): boolean {
  return /[/+]json$/.test(type)
}

/** Returns whether a Content-Type header has the form `type/subtype`, with or without parameters. */
export function isMediaType(contentType: string | undefined): boolean {
  return /^[\w!#$%&'*+.^`|~-]+\/[\w!#$%&'*+.^`|~-]+$/.test(mediaType(contentType))
}

function readBytes(request: FastifyRequest, payload: NodeJS.ReadableStream, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    if (Number(request.headers['content-length']) > maxBytes) throw tooLarge(maxBytes)
    sendContinue(request.raw)
    const chunks: Buffer[] = []
    let size = 0
    // The listener stays after an error. The rest of the body is then dropped, until the connection closes.
    payload.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size <= maxBytes) return void chunks.push(chunk)
      chunks.length = 0
      reject(tooLarge(maxBytes))
    })
    payload.once('end', () => resolve(Buffer.concat(chunks)))
    // The client closed the connection before the end of the body, or sent the body too slowly. In both cases, the
    // client will not read the answer, but the log and the metrics record its status. A 500 would look like a fault of
    // the service. So we answer 422.
    payload.once('error', () => reject(malformed()))
    payload.once('close', () => {
      // A request closes after a complete body too, and an unused error would still collect its stack trace.
      if (!request.raw.readableEnded) reject(malformed())
    })
  })
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Decodes JSON in UTF-8. @throws if the bytes are not UTF-8, or the text is not JSON */
export function decodeJson(bytes: Uint8Array): { text: string; value: unknown } {
  const text = utf8.decode(bytes)
  return { text, value: JSON.parse(text) }
}

function parse(bytes: Buffer): { text: string; value: unknown } {
  try {
    return decodeJson(bytes)
  } catch {
    throw malformed()
  }
}

function malformed(): AppError {
  return invalid({ body: [{ fr: 'Le corps n’est pas du JSON valide.', en: 'The body is not valid JSON.' }] })
}

/** The number of characters of a path that an error shows. */
const MAX_PATH_LENGTH = 200

/**
 * Returns a 422 if a string or a member name in the value contains NUL or a lone surrogate. Otherwise returns
 * undefined.
 */
export function forbiddenCharacterError(value: unknown): AppError | undefined {
  const path = findForbiddenCharacter(value)
  if (path === undefined) return undefined
  // The message repeats the path three times, and a path can be as long as the body.
  const field = path.length > MAX_PATH_LENGTH ? `${path.slice(0, MAX_PATH_LENGTH)}…` : path
  return invalid({
    [field]: [
      {
        fr: `Le champ ${field} contient un caractère interdit.`,
        en: `The ${field} field contains a forbidden character.`,
      },
    ],
  })
}

/**
 * Finds a string or a member name that contains NUL or a lone surrogate. The search has its own stack instead of
 * recursion, because the arrays in a body can be nested more deeply than the call stack allows.
 * @returns the path of the field, such as `data.place`, or `body` if the value itself is such a string
 * @returns undefined if no string and no member name contains such a character
 */
function findForbiddenCharacter(value: unknown): string | undefined {
  const stack: { path: string; item: unknown }[] = [{ path: '', item: value }]
  for (let next = stack.pop(); next; next = stack.pop()) {
    const { path, item } = next
    if (typeof item === 'string') {
      if (item.includes('\0') || !item.isWellFormed()) return path || 'body'
    } else if (typeof item === 'object' && item !== null) {
      for (const [name, member] of Object.entries(item)) {
        stack.push({ path, item: name }, { path: path ? `${path}.${name}` : name, item: member })
      }
    }
  }
  return undefined
}

function wrongType(expected: string): AppError {
  return new AppError('unsupported_media_type', {
    fr: `Le corps doit être envoyé en ${expected}.`,
    en: `The body must be sent as ${expected}.`,
  })
}

/** Returns the 415 for a compressed body. Its header tells the client which coding is accepted (RFC 9110 §15.5.16). */
function compressed(): AppError {
  return new AppError(
    'unsupported_media_type',
    { fr: 'Le corps doit être envoyé sans compression.', en: 'The body must be sent without compression.' },
    { headers: { 'accept-encoding': 'identity' } },
  )
}

/**
 * Returns the 413 for a body that is too large. The message states the limit in KiB. The connection closes, because the
 * service does not read the rest of the body.
 */
export function tooLarge(maxBytes: number): AppError {
  return new AppError(
    'payload_too_large',
    { fr: `Le corps dépasse ${maxBytes / 1024} Kio.`, en: `The body is larger than ${maxBytes / 1024} KiB.` },
    { headers: { connection: 'close' } },
  )
}

export function isCompressed({ headers }: FastifyRequest): boolean {
  return (headers['content-encoding'] || 'identity').toLowerCase() !== 'identity'
}

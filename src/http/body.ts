import type { FastifyRequest } from 'fastify'
import { AppError, invalid } from '../errors.ts'
import type { Text } from '../language.ts'

/** How a route reads its body. A route without such a rule ignores body and content type. */
export type BodyRule = {
  maxBytes: number
  /** Media types in lower case, without parameters. */
  types: readonly string[]
  /**
   * The one of `types` whose body is a list that the route answers item by item. It has its own limit. The route itself
   * calls `forbiddenCharacterError` for each item, so one bad item does not affect the others.
   */
  batch?: { type: string; maxBytes: number }
}

export const JSON_BODY: BodyRule = { maxBytes: 64 * 1024, types: ['application/json'] }

/**
 * Reads a JSON body. Resolves to undefined for a zero-length body, which counts as no body.
 * @throws AppError 413 over the limit, before any other check; 415 for another media type; 422 for a body that is not
 * UTF-8 or not JSON, or that holds NUL (PostgreSQL cannot store it) or a lone surrogate (UTF-8 cannot carry it)
 */
export async function readBody(request: FastifyRequest, payload: NodeJS.ReadableStream, rule: BodyRule) {
  const type = mediaType(request.headers['content-type'])
  const batch = type === rule.batch?.type ? rule.batch : undefined
  const bytes = await readBytes(request, payload, (batch ?? rule).maxBytes)
  if (bytes.length === 0) return undefined
  if (!rule.types.includes(type)) {
    throw new AppError('unsupported_media_type', {
      fr: `Le corps doit être envoyé en ${rule.types[0]}.`,
      en: `The body must be sent as ${rule.types[0]}.`,
    })
  }
  const { text, value } = parse(bytes)
  // The decoder and the parser reject both characters themselves, so only an escape can bring them in.
  const error = !batch && text.includes('\\u') ? forbiddenCharacterError(value) : undefined
  if (error) throw error
  // For the validation, null would be an absent body.
  if (value === null && !batch) throw invalid({ body: [NOT_AN_OBJECT] })
  return value
}

export const NOT_AN_OBJECT: Text = { fr: 'Le corps doit être un objet JSON.', en: 'The body must be a JSON object.' }

/** Returns the media type of a Content-Type in lower case, without parameters. Empty without the header. */
export function mediaType(contentType: string | undefined): string {
  return (contentType ?? '').split(';', 1)[0]!.trim().toLowerCase()
}

/** Returns whether a Content-Type has the form `type/subtype`, with or without parameters. */
export function isMediaType(contentType: string | undefined): boolean {
  return /^[\w!#$%&'*+.^`|~-]+\/[\w!#$%&'*+.^`|~-]+$/.test(mediaType(contentType))
}

async function readBytes(request: FastifyRequest, payload: NodeJS.ReadableStream, maxBytes: number): Promise<Buffer> {
  if (Number(request.headers['content-length']) > maxBytes) throw tooLarge(maxBytes)
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of payload as AsyncIterable<Buffer>) {
      size += chunk.length
      if (size > maxBytes) throw tooLarge(maxBytes)
      chunks.push(chunk)
    }
  } catch (error) {
    // The client closed the connection within its body, or took too long. No client reads the answer, but log and metrics
    // must not count it as a fault of the service.
    throw error instanceof AppError ? error : malformed()
  }
  return Buffer.concat(chunks)
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function parse(bytes: Buffer): { text: string; value: unknown } {
  try {
    const text = utf8.decode(bytes)
    return { text, value: JSON.parse(text) }
  } catch {
    throw malformed()
  }
}

function malformed(): AppError {
  return invalid({ body: [{ fr: 'Le corps n’est pas du JSON valide.', en: 'The body is not valid JSON.' }] })
}

/** Returns the 422 for a value with NUL or a lone surrogate in any string or key, undefined for any other value. */
export function forbiddenCharacterError(value: unknown): AppError | undefined {
  const field = findForbiddenCharacter(value)
  if (field === undefined) return undefined
  return invalid({
    [field]: [
      {
        fr: `Le champ ${field} contient un caractère interdit.`,
        en: `The ${field} field holds a forbidden character.`,
      },
    ],
  })
}

/**
 * Returns where a string or key holds NUL or a lone surrogate: `data.place`, or `body` at the top. Undefined if none does.
 * It walks with an explicit stack, because a body of nothing but brackets nests deeper than the call stack.
 */
function findForbiddenCharacter(value: unknown): string | undefined {
  const rest: { at: string; item: unknown }[] = [{ at: '', item: value }]
  for (let next = rest.pop(); next; next = rest.pop()) {
    const { at, item } = next
    if (typeof item === 'string') {
      if (item.includes('\0') || !item.isWellFormed()) return at || 'body'
    } else if (typeof item === 'object' && item !== null) {
      for (const [key, inner] of Object.entries(item)) {
        rest.push({ at, item: key }, { at: at ? `${at}.${key}` : key, item: inner })
      }
    }
  }
  return undefined
}

/** Returns the 413. Its text gives the limit in KiB. */
export function tooLarge(maxBytes: number): AppError {
  return new AppError('payload_too_large', {
    fr: `Le corps dépasse ${maxBytes / 1024} Kio.`,
    en: `The body is larger than ${maxBytes / 1024} KiB.`,
  })
}

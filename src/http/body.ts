import type { FastifyRequest } from 'fastify'
import { AppError, invalid } from '../errors.ts'
import type { Text } from '../language.ts'

/** How a route reads its body; a route without one ignores body and content type. */
export type BodyRule = {
  maxBytes: number
  /** Media types in lower case, without parameters. */
  types: readonly string[]
  /**
   * The one of `types` whose body is a list that the route answers item by item. It has a limit of its own, and the route
   * itself asks `unstorable` of each item, so that one bad item costs the others nothing.
   */
  batch?: { type: string; maxBytes: number }
}

export const JSON_BODY: BodyRule = { maxBytes: 64 * 1024, types: ['application/json'] }

/**
 * Reads a JSON body. Resolves to undefined for a zero-length one, which is no body.
 * Throws 413 over the limit, which comes first; 415 for another media type; 422 on `body` for what is not UTF-8, not
 * JSON, or holds NUL or a lone surrogate anywhere (PostgreSQL cannot store the one, UTF-8 cannot carry the other).
 */
export async function readBody(request: FastifyRequest, payload: NodeJS.ReadableStream, rule: BodyRule) {
  const type = mediaType(request.headers['content-type'])
  const batch = type === rule.batch?.type ? rule.batch : undefined
  const bytes = await collect(request, payload, (batch ?? rule).maxBytes)
  if (bytes.length === 0) return undefined
  if (!rule.types.includes(type)) {
    throw new AppError('unsupported_media_type', {
      fr: `Le corps doit être envoyé en ${rule.types[0]}.`,
      en: `The body must be sent as ${rule.types[0]}.`,
    })
  }
  const { text, value } = parse(bytes)
  // UTF-8 that decoded holds neither in the clear, so only an escape can bring them in.
  const refusal = !batch && text.includes('\\u') ? unstorable(value) : undefined
  if (refusal) throw refusal
  // To the validation null is a body that wasn't sent.
  if (value === null && !batch) throw invalid({ body: [NOT_AN_OBJECT] })
  return value
}

export const NOT_AN_OBJECT: Text = { fr: 'Le corps doit être un objet JSON.', en: 'The body must be a JSON object.' }

/** The media type that a Content-Type names: in lower case, without parameters; empty for none. */
export function mediaType(contentType: string | undefined): string {
  return (contentType ?? '').split(';', 1)[0]!.trim().toLowerCase()
}

/** Whether it reads as a media type at all, `type/subtype` with or without parameters. */
export function isMediaType(contentType: string | undefined): boolean {
  return /^[\w!#$%&'*+.^`|~-]+\/[\w!#$%&'*+.^`|~-]+$/.test(mediaType(contentType))
}

async function collect(request: FastifyRequest, payload: NodeJS.ReadableStream, maxBytes: number): Promise<Buffer> {
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
    // The client went away within its body, or took too long over it. Nobody reads the answer, but the log and the counts
    // must not call it a fault of ours.
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

/** The 422 for a value with NUL or a lone surrogate in any string, a key included; undefined when it has none. */
export function unstorable(value: unknown): AppError | undefined {
  const field = unstorableAt(value)
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
 * Where a string holds NUL or a lone surrogate: `data.place`, or `body` at the top; undefined when none does. It walks with
 * a stack of its own, since a body of nothing but brackets nests deeper than calls may.
 */
function unstorableAt(value: unknown): string | undefined {
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

/** The 413. @param maxBytes the limit, told in KiB */
export function tooLarge(maxBytes: number): AppError {
  return new AppError('payload_too_large', {
    fr: `Le corps dépasse ${maxBytes / 1024} Kio.`,
    en: `The body is larger than ${maxBytes / 1024} KiB.`,
  })
}

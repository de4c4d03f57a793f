import type { Error as ErrorAnswer } from './api.ts'
import { CourtsideError, ownError } from './error.ts'

/** How the service is reached. */
export type Wire = { url: string; language?: string | undefined; fetch: typeof fetch }

export type Request = {
  method: string
  /** Below the wire's URL, with its query. */
  path: string
  token?: string | null
  body?: unknown
  contentType?: string
  signal?: AbortSignal | undefined
}

/**
 * A phone in a tunnel would otherwise wait for as long as its system pleases, and the refresh keep every tab waiting.
 */
const TIMEOUT_MS = 30_000

/** Sends a request. @returns an answer of success, its body unread @throws CourtsideError on any other */
export async function send(wire: Wire, request: Request): Promise<Response> {
  const { method, path, token, body, contentType = 'application/json', signal } = request
  const headers: Record<string, string> = {}
  if (token) headers.authorization = `Bearer ${token}`
  if (wire.language) headers['accept-language'] = wire.language
  if (body !== undefined) headers['content-type'] = contentType
  const init: RequestInit = { method, headers }
  if (body !== undefined) init.body = typeof body === 'string' ? body : JSON.stringify(body)
  if (signal) init.signal = signal
  const response = await wire.fetch(wire.url + path, init).catch(cause => {
    throw unreachable(wire, cause)
  })
  if (response.ok) return response
  const answer: unknown = await response.json().catch(() => undefined)
  const retryAfter = secondsOf(response.headers.get('retry-after'))
  if (isError(answer)) throw new CourtsideError(answer.message, response.status, answer.code, { ...answer, retryAfter })
  throw ownError('bad_answer', response.status, languageOf(wire), { retryAfter })
}

/** The same with its body, for 30 s at most. @throws CourtsideError */
export async function sendForJson<T>(wire: Wire, request: Request): Promise<T> {
  const { signal } = request
  const limit = new AbortController()
  const abort = () => limit.abort()
  const timer = setTimeout(abort, TIMEOUT_MS)
  if (signal?.aborted) abort()
  signal?.addEventListener('abort', abort)
  try {
    const response = await send(wire, { ...request, signal: limit.signal })
    const text = await response.text().catch(cause => {
      throw unreachable(wire, cause)
    })
    try {
      return JSON.parse(text)
    } catch (cause) {
      throw ownError('bad_answer', response.status, languageOf(wire), { cause })
    }
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', abort)
  }
}

function unreachable(wire: Wire, cause: unknown): CourtsideError {
  return ownError('network', 0, languageOf(wire), { cause })
}

function languageOf({ language }: Wire): string | undefined {
  return language ?? globalThis.navigator?.language
}

function isError(answer: unknown): answer is ErrorAnswer {
  const { message, code } = (answer ?? {}) as Partial<ErrorAnswer>
  return typeof message === 'string' && typeof code === 'string'
}

/** Seconds of a Retry-After, which a proxy may write as a date. */
function secondsOf(header: string | null): number | undefined {
  if (!header) return undefined
  const seconds = /^\d+$/.test(header) ? Number(header) : Math.ceil((Date.parse(header) - Date.now()) / 1000)
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds)
}

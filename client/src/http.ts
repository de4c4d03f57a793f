import { onAbort } from './abort.ts'
import type { Error as ErrorAnswer } from './api.ts'
import { CourtsideError, createClientError } from './error.ts'

/** The settings that all requests share. */
export type Transport = { url: string; language: string | undefined; fetch: typeof fetch }

export type Request = {
  method: string
  /** The path and the query of the request. `send` appends them to the `url` of the `Transport`. */
  path: string
  token?: string | null
  /** The language of this answer. The default is the language of the `Transport`. */
  language?: string | undefined
  body?: unknown
  contentType?: string
  signal?: AbortSignal | undefined
}

export type JsonAnswer<T> = {
  body: T
  /** The seconds in the Retry-After header of the answer, or undefined if the header is missing. */
  retryAfter: number | undefined
}

/**
 * The time limit of each request that expects a JSON answer. Without a limit, the refresh of a token could take minutes
 * on a phone without a network. `Session` lets only one tab refresh at a time, so all other tabs would wait.
 */
const TIMEOUT_MS = 30_000

type TransportOptions = { url: string; language?: string | undefined; fetch?: typeof fetch | undefined }

export function createTransport({ url, language, fetch: customFetch }: TransportOptions): Transport {
  // Browsers throw an error if `fetch` is called as a method of this transport, so a function wraps `fetch`. A page may
  // replace the global `fetch` later, so the wrapper looks up `fetch` at every call.
  const callGlobalFetch: typeof fetch = (input, init) => fetch(input, init)
  return { url: url.replace(/\/+$/, ''), language, fetch: customFetch ?? callGlobalFetch }
}

/**
 * Sends a request.
 * @returns a successful answer, whose body is not read yet
 * @throws CourtsideError if there is no answer, or if the answer is not successful
 */
export async function send(transport: Transport, request: Request): Promise<Response> {
  const { method, path, token, body, contentType = 'application/json', signal } = request
  const language = request.language ?? transport.language
  const headers: Record<string, string> = {}
  if (token) headers.authorization = `Bearer ${token}`
  if (language) headers['accept-language'] = language
  if (body !== undefined) headers['content-type'] = contentType
  const init: RequestInit = { method, headers }
  if (body !== undefined) init.body = typeof body === 'string' ? body : JSON.stringify(body)
  if (signal) init.signal = signal
  const response = await transport.fetch(transport.url + path, init).catch(cause => {
    throw createNetworkError(transport, cause)
  })
  if (response.ok) return response
  const answer: unknown = await response.json().catch(() => undefined)
  const retryAfter = readRetryAfter(response)
  if (isErrorAnswer(answer)) {
    throw new CourtsideError(answer.message, response.status, answer.code, { ...answer, retryAfter })
  }
  throw createClientError('bad_answer', response.status, findLanguage(transport), { retryAfter })
}

/** Sends a request and reads the JSON of the answer. Both steps together may take 30 s. @throws CourtsideError */
export async function sendForJson<T>(transport: Transport, request: Request): Promise<JsonAnswer<T>> {
  const { signal } = request
  const limit = new AbortController()
  const abort = () => limit.abort()
  const timer = setTimeout(abort, TIMEOUT_MS)
  const removeListener = onAbort(signal, abort)
  try {
    const response = await send(transport, { ...request, signal: limit.signal })
    const text = await response.text().catch(cause => {
      throw createNetworkError(transport, cause)
    })
    try {
      return { body: JSON.parse(text), retryAfter: readRetryAfter(response) }
    } catch (cause) {
      throw createClientError('bad_answer', response.status, findLanguage(transport), { cause })
    }
  } finally {
    clearTimeout(timer)
    removeListener()
  }
}

function createNetworkError(transport: Transport, cause: unknown): CourtsideError {
  return createClientError('network', 0, findLanguage(transport), { cause })
}

export function findLanguage({ language }: Transport): string | undefined {
  return language ?? globalThis.navigator?.language
}

function isErrorAnswer(answer: unknown): answer is ErrorAnswer {
  const { message, code } = (answer ?? {}) as Partial<ErrorAnswer>
  return typeof message === 'string' && typeof code === 'string'
}

/**
 * Returns the Retry-After header in seconds, or undefined if it is missing or invalid. If a proxy sent a date, converts
 * the date to seconds.
 */
function readRetryAfter({ headers }: Response): number | undefined {
  const header = headers.get('retry-after')
  if (!header) return undefined
  const seconds = /^\d+$/.test(header) ? Number(header) : Math.ceil((Date.parse(header) - Date.now()) / 1000)
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds)
}

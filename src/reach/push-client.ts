import { lookup } from 'node:dns'
import { once } from 'node:events'
import type { ClientRequest, IncomingMessage } from 'node:http'
import { request as requestSecurely, Agent as SecureAgent } from 'node:https'
import type { LookupFunction, Socket } from 'node:net'
import { type Endpoint, isAllowedAddress } from './push-hosts.ts'

// `src/http/format/status.ts` says why this is no `import`.
const { Agent, request: requestOpenly } = process.getBuiltinModule('node:http')

/** The maximum time from the start of a request until the status of its answer. */
const TIMEOUT_MS = 10_000
/** The maximum time for the rest of the answer. If the rest has ended by then, the connection is used again. */
const REST_MS = 1_000
const MAX_HEADER_BYTES = 8 * 1_024
const MAX_BODY_BYTES = 1_024
/** How long an idle connection stays open. Push services close theirs after some minutes. */
const IDLE_MS = 60_000

export type PushRequest = { headers: Record<string, string>; body: Buffer }
export type PushAnswer = { status: number; retryAfter: string | undefined }

/**
 * Makes the request, after the connection is open and before anything is written. Returns undefined if there is nothing
 * to send any more. `isNew` is false if the connection was already open before this request.
 */
export type PrepareRequest = (connection: { isNew: boolean }) => Promise<PushRequest | undefined>

export type PushClient = ReturnType<typeof createPushClient>

/**
 * Creates the HTTP client for push services. It connects only to addresses that `isAllowedAddress` accepts, follows no
 * redirect, and reads at most 1 KiB of the body of an answer.
 * @param resolve resolves host names, by default as the operating system does
 */
export function createPushClient({ resolve = lookup, timeoutMs = TIMEOUT_MS } = {}) {
  const options = { keepAlive: true, timeout: IDLE_MS }
  const [secureAgent, agent] = [new SecureAgent(options), new Agent(options)]
  const opened = new WeakSet<Socket>()

  /** Resolves once the connection can carry a request. If the connection fails, the request gets the error. */
  async function whenOpen(socket: Socket, protocol: string): Promise<void> {
    if (!opened.has(socket)) await once(socket, protocol === 'https:' ? 'secureConnect' : 'connect')
    opened.add(socket)
  }

  function open({ url, isLocal }: Endpoint): ClientRequest {
    const shared = { method: 'POST', lookup: checkLookup(resolve, isLocal), maxHeaderSize: MAX_HEADER_BYTES }
    if (url.protocol === 'https:') return requestSecurely(url, { ...shared, agent: secureAgent })
    return requestOpenly(url, { ...shared, agent })
  }

  return {
    /**
     * Sends one request.
     * @returns the answer, or undefined if `prepare` returned undefined
     * @throws if there is no answer, for whatever reason
     */
    post(endpoint: Endpoint, prepare: PrepareRequest): Promise<PushAnswer | undefined> {
      const request = open(endpoint)
      const timer = setTimeout(() => request.destroy(new Error('the push service did not answer in time')), timeoutMs)
      const { promise, resolve: settle, reject } = Promise.withResolvers<PushAnswer | undefined>()
      let isWritten = false
      request.on('response', answer => {
        // A load balancer may close an idle connection with an answer that belongs to no request.
        if (isWritten) settle(readAnswer(answer))
        else request.destroy(new Error('the push service answered before the request'))
      })
      request.on('error', reject)
      // After a refused upgrade, Node emits no other event.
      request.on('close', () => reject(new Error('the push service closed the connection')))
      const write = async (socket: Socket) => {
        await whenOpen(socket, endpoint.url.protocol)
        if (!isAllowedAddress(socket.remoteAddress ?? '', endpoint.isLocal)) throw new Error(REFUSED)
        const prepared = await prepare({ isNew: !request.reusedSocket })
        if (!prepared) {
          settle(undefined)
          request.destroy()
        } else if (!request.destroyed) {
          for (const [name, value] of Object.entries(prepared.headers)) request.setHeader(name, value)
          isWritten = true
          request.end(prepared.body)
        }
      }
      request.on('socket', socket => {
        write(socket).catch(error => request.destroy(error))
      })
      return promise.finally(() => clearTimeout(timer))
    },

    close(): void {
      secureAgent.destroy()
      agent.destroy()
    },
  }
}

const REFUSED = 'the host of the push service has no address of the internet'

/** Returns a `lookup` for sockets that leaves out the addresses to which no push may go. */
function checkLookup(resolve: typeof lookup, isLocal: boolean): LookupFunction {
  return (host, options, callback) => {
    resolve(host, { ...options, all: true }, (error, addresses) => {
      if (error) return callback(error, '')
      const allowed = addresses.filter(({ address }) => isAllowedAddress(address, isLocal))
      if (!allowed[0]) return callback(new Error(REFUSED), '')
      if (options.all) return callback(null, allowed)
      return callback(null, allowed[0].address, allowed[0].family)
    })
  }
}

/** Reads the status of an answer, and as much of the rest as the connection needs for its next request. */
async function readAnswer(answer: IncomingMessage): Promise<PushAnswer> {
  let bytes = 0
  answer.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > MAX_BODY_BYTES) answer.destroy()
  })
  // The status counts, even if the rest of the answer fails.
  answer.on('error', () => {})
  const closed = Promise.withResolvers<void>()
  answer.on('close', closed.resolve)
  const timer = setTimeout(() => answer.destroy(), REST_MS)
  await closed.promise
  clearTimeout(timer)
  return { status: answer.statusCode!, retryAfter: answer.headers['retry-after'] }
}

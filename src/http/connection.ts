import type { IncomingMessage, OutgoingHttpHeader, OutgoingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import { describeRefusal, formatRefusal, type Refusal, refuseHead, toRefusal } from './refusal.ts'
import { toOriginForm } from './request-target.ts'

const http = process.getBuiltinModule('node:http')

/** If at most this much of a body is unread after an early answer, the service reads it and keeps the connection. */
const MAX_DISCARDED_BYTES = 64 * 1024

/**
 * After an answer that closes the connection, a client may still be sending a body or other requests. If the service
 * closed the socket immediately, TCP would send a reset, and the client could lose the answer. So the service closes
 * only its sending side, as RFC 9112 §9.6 recommends. It waits up to this time for the client to close the connection,
 * and drops up to this many bytes of the body.
 */
const LINGER_BYTES = 1024 * 1024
const LINGER_MS = 2_000

/** A response that closes the connection if too much of the request's body is unread. */
export class Answer extends http.ServerResponse {
  override writeHead(status: number, headers?: OutgoingHttpHeaders | OutgoingHttpHeader[]): this
  override writeHead(status: number, reason?: string, headers?: OutgoingHttpHeaders | OutgoingHttpHeader[]): this
  override writeHead(...args: unknown[]): this {
    const { req: request, shouldKeepAlive } = this
    // A chunked body does not announce its size. If the client still waits for the status 100, Node closes the
    // connection.
    const size = Number(request.headers['content-length'] ?? Number.POSITIVE_INFINITY)
    const isUnread = !shouldKeepAlive || size > MAX_DISCARDED_BYTES
    if (!request.complete && isUnread) {
      this.shouldKeepAlive = false
      let rest = LINGER_BYTES
      request.on('data', (chunk: Buffer) => {
        rest -= chunk.length
        if (rest < 0) request.socket.destroy()
      })
    }
    return super.writeHead(...(args as [number]))
  }
}

type Exchange = { request: IncomingMessage; response: Answer }

export type Handlers = {
  handle: (request: IncomingMessage, response: Answer) => void
  /** Called for each request that the service refuses because it is not valid HTTP. */
  onRefusal: (refusal: Refusal) => void
}

/**
 * One connection of a client. It gives one request at a time to the handler. So pipelined requests cost little memory,
 * and a request after `Connection: close` has no effect. The state of these exchanges decides what is written to the
 * socket. Each request gets exactly one answer, in order, and no other bytes are written into an answer (RFC 9112
 * §9.3).
 */
export class Connection {
  readonly #socket: Socket
  readonly #handlers: Handlers
  readonly #maxPipelined: number
  /** The handler works on the first exchange. The other exchanges wait. */
  readonly #exchanges: Exchange[] = []
  /** The newest request whose head has arrived. The parser may still be reading its body. */
  #newest: Exchange | undefined
  /** If the parser has failed: the function to call after the last answer. */
  #finish: (() => void) | undefined
  #slow: { response: Answer; since: number } | undefined

  constructor(socket: Socket, handlers: Handlers, maxPipelined: number) {
    this.#socket = socket
    this.#handlers = handlers
    this.#maxPipelined = maxPipelined
    // Node calls this method after an answer that closes the connection.
    socket.destroySoon = () => this.#close()
  }

  receive(request: IncomingMessage, response: Answer): void {
    this.#newest = { request, response }
    this.#exchanges.push(this.#newest)
    if (this.#exchanges.length > this.#maxPipelined) this.#socket.destroy()
    else if (this.#exchanges.length === 1 && !this.#socket.writableEnded) this.#start(this.#newest)
  }

  #start({ request, response }: Exchange): void {
    // Node's own listener for this event was added earlier. It has closed the socket if this is the last answer.
    response.once('finish', () => {
      this.#exchanges.shift()
      if (this.#socket.writableEnded) return
      const [next] = this.#exchanges
      if (next) this.#start(next)
      else this.#finish?.()
    })
    // After a request with `Upgrade`, Node's parser drops the remaining bytes of the same read. These bytes may contain
    // the head of the next request. Its body would then be read as a request. So this answer closes the connection.
    if (request.headers.upgrade !== undefined) response.shouldKeepAlive = false
    const refusal = refuseHead(request)
    if (!refusal) {
      request.url = toOriginForm(request.url!)
      return void this.#handlers.handle(request, response)
    }
    const { headers, body } = describeRefusal(refusal)
    response.writeHead(refusal.status, headers).end(body)
    this.#handlers.onRefusal(refusal)
  }

  /** Handles an error of the parser, of the socket, or a request that came too slowly. */
  fail(error: NodeJS.ErrnoException): void {
    if (this.#socket.destroyed || this.#finish) return
    // The client has got its last answer, and everything that it still sends is ignored.
    if (this.#socket.writableEnded) return void this.#socket.pause()
    const broken = this.#newest?.request.complete === false ? this.#newest : undefined
    // The answer to the broken request may have been sent before its body broke. In this case, there is no second
    // answer.
    if (broken?.response.headersSent) return void this.#finishWith(() => this.#close())
    if (broken) this.#exchanges.splice(this.#exchanges.indexOf(broken), 1)
    this.refuse(toRefusal(error))
  }

  /** Refuses the bytes after the newest request, and closes the connection. */
  refuse(refusal: Refusal): void {
    this.#finishWith(() => {
      this.#close(formatRefusal(refusal))
      this.#handlers.onRefusal(refusal)
    })
  }

  #finishWith(finish: () => void): void {
    this.#finish = finish
    this.#socket.pause()
    const [current] = this.#exchanges
    if (!current) finish()
    // A stream would not end by itself.
    else if (current.response.headersSent && !current.response.writableEnded) current.response.end()
  }

  /** Closes the sending side. Node closes the socket when the client has closed its side too. */
  #close(lastBytes = ''): void {
    const socket = this.#socket
    if (socket.writableFinished) return void socket.destroy()
    if (!socket.writableEnded) socket.end(lastBytes)
    socket.once('finish', () => {
      const timer = setTimeout(() => socket.destroy(), LINGER_MS).unref()
      socket.once('close', () => clearTimeout(timer))
    })
  }

  /**
   * Closes the connection, unless the client waits for an answer. Called after some time in which no byte has moved.
   * While the handler works on an answer, the client must wait. In all other cases, the client should have sent or read
   * bytes.
   */
  onIdle(): void {
    const [current] = this.#exchanges
    if (!current || current.response.headersSent || this.#socket.writableEnded) this.#socket.destroy()
  }

  /**
   * Closes the connection if the client has not read a complete answer within `maxMs`. If further requests wait, the
   * client must read all answers within this time. Call this method regularly.
   */
  checkProgress(now: number, maxMs: number): void {
    const [current, next] = this.#exchanges
    const response = current?.response
    if (!response?.writableEnded) this.#slow = undefined
    else if (!this.#slow || (!next && this.#slow.response !== response)) this.#slow = { response, since: now }
    else if (now - this.#slow.since > maxMs) this.#socket.destroy()
  }
}

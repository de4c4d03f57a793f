import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'
import { Answer, Connection, type Handlers } from './connection.ts'
import { holdContinue } from './expect.ts'
import { CONNECT_REFUSED } from './refusal.ts'

const http = process.getBuiltinModule('node:http')

/** The limits of the connections to one process. */
export type ConnectionLimits = {
  /** The maximum number of open connections. */
  connections: number
  /** The maximum number of open streams. It is smaller than `connections`, so streams leave room for requests. */
  streams: number
  /** If a user has received no event for this time, the process reads the user's inbox without a hint. */
  quietStreamMs: number
  /** The maximum number of requests of one connection that wait for their answers. */
  pipelined: number
  /**
   * The time without progress after which a connection closes, except while the client waits for an answer. Node may
   * take up to twice this time. It is longer than the time between two heartbeats of a stream.
   */
  idleMs: number
  /** The time in which a client must send the head of a request. */
  headMs: number
  /** The time in which a client must send a complete request. */
  requestMs: number
  /** The time in which a client must read a complete answer. */
  answerMs: number
  /** The time between two checks of `headMs`, `requestMs` and `answerMs`. */
  checkMs: number
}

export const CONNECTION_LIMITS: ConnectionLimits = {
  connections: 10_000,
  streams: 8_000,
  quietStreamMs: 60_000,
  pipelined: 20,
  idleMs: 28_000,
  headMs: 10_000,
  requestMs: 30_000,
  answerMs: 30_000,
  checkMs: 5_000,
}

/**
 * Creates the HTTP server. Each connection follows the rules of `Connection` and the limits.
 * @param onDrop called for each connection that the server refuses because too many are open
 */
export function createHttpServer(handlers: Handlers, limits: ConnectionLimits, onDrop: () => void): Server {
  const connections = new Map<Socket, Connection>()
  const server = http.createServer(
    {
      ServerResponse: Answer,
      keepAliveTimeout: 72_000,
      headersTimeout: limits.headMs,
      requestTimeout: limits.requestMs,
      connectionsCheckingInterval: limits.checkMs,
      // Node would answer without our error body. `refuseHead` checks the header instead.
      requireHostHeader: false,
    },
    (request: IncomingMessage, response: Answer) => connections.get(request.socket)?.receive(request, response),
  )
  server.maxConnections = limits.connections
  server.timeout = limits.idleMs
  // A client may close its side of the connection after its request. By default, Node would then send no answer.
  Object.assign(server, { httpAllowHalfOpen: true })
  server.on('connection', (socket: Socket) => {
    connections.set(socket, new Connection(socket, handlers, limits.pipelined))
    socket.once('close', () => connections.delete(socket))
  })
  server.on('drop', onDrop)
  server.on('clientError', (error, socket) => connections.get(socket as Socket)?.fail(error))
  server.on('timeout', socket => connections.get(socket)?.onIdle())
  server.on('connect', (_, socket) => {
    // Node has removed its own listeners from the socket.
    socket.on('error', () => {})
    connections.get(socket as Socket)?.refuse(CONNECT_REFUSED)
  })
  // By default, Node would ask for the body before the route decides whether it reads one.
  server.on('checkContinue', (request, response) => {
    holdContinue(request, response)
    server.emit('request', request, response)
  })
  // An unknown `Expect` header is ignored. By default, Node would answer 417, without our error body.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
  server.on('listening', () => {
    const timer = setInterval(() => {
      for (const connection of connections.values()) connection.checkProgress(performance.now(), limits.answerMs)
    }, limits.checkMs).unref()
    server.once('close', () => clearInterval(timer))
  })
  return server as unknown as Server
}

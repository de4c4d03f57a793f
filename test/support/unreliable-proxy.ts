import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'

/**
 * Starts an HTTP proxy in front of the service. The proxy forwards the first request but drops its response. The proxy
 * answers the second request with 503, and forwards all later requests. After `reset({ isReliable: true })`, the proxy
 * forwards every request and its response. After `reset({ isAhead: true })`, it does the same, but moves the events in
 * every other request, starting with the first, ten minutes into the future.
 */
export async function startUnreliableProxy(address: string) {
  const bodies: string[] = []
  let isReliable = false
  let isAhead = false
  async function forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await buffer(request)
    bodies.push(body.toString())
    if (bodies.length === 2 && !isReliable) {
      response.writeHead(503, { 'retry-after': '0', 'content-type': 'application/json' })
      response.end('{"message":"Service unavailable.","code":"unavailable"}')
      return
    }
    const { authorization, 'content-type': type } = request.headers
    const headers = { authorization: authorization!, 'content-type': type! }
    const sent = isAhead && bodies.length % 2 === 1 ? moveTimes(body.toString()) : body
    const answer = await fetch(address + request.url, { method: request.method!, headers, body: sent })
    const answerBody = await answer.text()
    if (bodies.length === 1 && !isReliable) response.destroy()
    else response.writeHead(answer.status, { 'content-type': 'application/json' }).end(answerBody)
  }
  const server: Server = createServer(forward).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    server,
    bodies,
    address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    reset(options: { isReliable?: boolean; isAhead?: boolean } = {}) {
      bodies.length = 0
      isAhead = options.isAhead ?? false
      isReliable = isAhead || (options.isReliable ?? false)
    },
  }
}

/** Moves the `time` of each event in a body ten minutes into the future. */
function moveTimes(body: string): string {
  return body.replaceAll(
    /"time": ?"([^"]+)"/g,
    (_, time) => `"time":"${new Date(Date.parse(time) + 600_000).toISOString()}"`,
  )
}

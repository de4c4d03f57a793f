import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'

/**
 * Starts an HTTP proxy in front of the service. The proxy forwards the first request but drops its response. The proxy
 * answers the second request with 503, and forwards all later requests. After `reset({ isReliable: true })`, the proxy
 * forwards every request and its response.
 */
export async function startUnreliableProxy(address: string) {
  const bodies: string[] = []
  let isReliable = false
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
    const answer = await fetch(address + request.url, { method: request.method!, headers, body })
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
    reset(options: { isReliable?: boolean } = {}) {
      bodies.length = 0
      isReliable = options.isReliable ?? false
    },
  }
}

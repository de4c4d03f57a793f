import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'

/**
 * Stands before the service and, unless it is calm, loses the first answer after the service has given it, then says 503, and
 * from then on lets everything through.
 */
export async function startTunnel(address: string) {
  const bodies: string[] = []
  let calm = false
  async function pass(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await buffer(request)
    bodies.push(body.toString())
    if (bodies.length === 2 && !calm) {
      response.writeHead(503, { 'retry-after': '0', 'content-type': 'application/json' })
      response.end('{"message":"Service unavailable.","code":"unavailable"}')
      return
    }
    const { authorization, 'content-type': type } = request.headers
    const headers = { authorization: authorization!, 'content-type': type! }
    const answer = await fetch(address + request.url, { method: request.method!, headers, body })
    const answered = await answer.text()
    if (bodies.length === 1 && !calm) response.destroy()
    else response.writeHead(answer.status, { 'content-type': 'application/json' }).end(answered)
  }
  const server: Server = createServer(pass).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    server,
    bodies,
    address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    reset(options: { calm?: boolean } = {}) {
      bodies.length = 0
      calm = options.calm ?? false
    },
  }
}

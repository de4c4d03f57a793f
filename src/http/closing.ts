import type { Socket } from 'node:net'
import type { App } from './route.ts'

/** The time that running requests have to finish after shutdown begins. */
const CLOSE_GRACE_MS = 5_000

/**
 * Limits the time that `app.close()` takes. By default, Node waits for three kinds of connection:
 * - connections that have sent no request yet; browsers and load balancers open these in advance
 * - connections that stay open after an answer that was sent during shutdown
 * - connections with a request body that never ends
 */
export function closeConnectionsOnShutdown(app: App): void {
  const unusedSockets = new Set<Socket>()
  app.server.on('connection', (socket: Socket) => {
    unusedSockets.add(socket)
    socket.once('close', () => unusedSockets.delete(socket))
  })
  app.server.prependListener('request', request => unusedSockets.delete(request.socket))
  app.addHook('preClose', async () => {
    // Fastify does not close a server that never listened.
    if (!app.server.listening) return
    for (const socket of unusedSockets) socket.destroy()
    const sweep = setInterval(() => app.server.closeIdleConnections(), 50)
    const deadline = setTimeout(() => app.server.closeAllConnections(), CLOSE_GRACE_MS)
    app.server.once('close', () => {
      clearInterval(sweep)
      clearTimeout(deadline)
    })
  })
}

import type { Socket } from 'node:net'
import type { App } from './route.ts'

/** How long a running request may still take after the process was asked to stop. */
const CLOSE_GRACE_MS = 5_000

/**
 * Bounds the time that `app.close()` takes. Node by itself waits for connections that have sent no request yet (browsers and
 * load balancers open some ahead), for connections that stay open after a late answer, and for bodies that never end.
 */
export function closeConnectionsOnShutdown(app: App): void {
  const unusedSockets = new Set<Socket>()
  app.server.on('connection', (socket: Socket) => {
    unusedSockets.add(socket)
    socket.once('close', () => unusedSockets.delete(socket))
  })
  app.server.prependListener('request', request => unusedSockets.delete(request.socket))
  app.addHook('preClose', async () => {
    for (const socket of unusedSockets) socket.destroy()
    const sweep = setInterval(() => app.server.closeIdleConnections(), 50)
    const deadline = setTimeout(() => app.server.closeAllConnections(), CLOSE_GRACE_MS)
    app.server.once('close', () => {
      clearInterval(sweep)
      clearTimeout(deadline)
    })
  })
}

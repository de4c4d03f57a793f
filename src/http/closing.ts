import type { Socket } from 'node:net'
import type { App } from './route.ts'

/** How long a request that runs may still take once the process is told to stop. */
const FINISH_MS = 5_000

/**
 * Lets no connection hold up `app.close()`: Node by itself waits for those on which nothing was asked yet (browsers and
 * load balancers open some ahead), for those that fall silent after a late answer, and for bodies that never end.
 */
export function closePromptly(app: App): void {
  const unasked = new Set<Socket>()
  app.server.on('connection', (socket: Socket) => {
    unasked.add(socket)
    socket.once('close', () => unasked.delete(socket))
  })
  app.server.prependListener('request', request => unasked.delete(request.socket))
  app.addHook('preClose', async () => {
    for (const socket of unasked) socket.destroy()
    const sweeping = setInterval(() => app.server.closeIdleConnections(), 50)
    const late = setTimeout(() => app.server.closeAllConnections(), FINISH_MS)
    app.server.once('close', () => {
      clearInterval(sweeping)
      clearTimeout(late)
    })
  })
}

import { once } from 'node:events'
import { createServer, connect as dial, type Socket } from 'node:net'

/** Passes everything on to a server until it is told to be silent, as a machine that lost its power is. */
export async function wire(target: URL) {
  let silent = false
  let writes = 0
  let room = Number.POSITIVE_INFINITY
  const sockets: Socket[] = []
  const server = createServer(near => {
    const far = dial(Number(target.port), target.hostname)
    near.on('data', () => {
      writes += 1
    })
    far.on('data', bytes => {
      room -= bytes.length
      silent ||= room < 0
    })
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.push(from)
      from.on('data', bytes => silent || to.write(bytes)).on('error', () => {})
      from.on('close', () => to.destroy())
    }
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = new URL(target)
  url.port = String((server.address() as { port: number }).port)
  return {
    url: url.href,
    hush: (now: boolean) => {
      silent = now
      room = Number.POSITIVE_INFINITY
    },
    /** Goes silent once the server has said so much more. */
    hushAfter: (bytes: number) => {
      room = bytes
    },
    /** In how many pieces the server was sent what it was sent so far. */
    writes: () => writes,
    close: async () => {
      for (const socket of sockets) socket.destroy()
      await once(server.close(), 'close')
    },
  }
}

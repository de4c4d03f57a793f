import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'

/**
 * Starts a TCP proxy in front of a server. While the proxy is silent, it drops all bytes but keeps its connections
 * open. To its clients, the server then looks like a machine that lost its power.
 * @param change changes the replies of the server, given as Latin-1 text. It must keep their length
 * @param changeRequest the same for what the client sends
 */
export async function startProxy(
  target: URL,
  change?: (reply: string) => string,
  changeRequest?: (request: string) => string,
) {
  let isSilent = false
  let writes = 0
  let isRefusing = false
  let bytesLeft = Number.POSITIVE_INFINITY
  const sockets: Socket[] = []
  const forgotten = new Set<Socket>()
  const server = createServer(near => {
    if (isRefusing) near.destroy()
    const far = connect(Number(target.port || 5432), target.hostname)
    near.on('data', () => {
      writes += 1
    })
    far.on('data', bytes => {
      bytesLeft -= bytes.length
      isSilent ||= bytesLeft < 0
    })
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.push(from)
      const changeText = from === far ? change : changeRequest
      const convert = (bytes: Buffer) =>
        changeText ? Buffer.from(changeText(bytes.toString('latin1')), 'latin1') : bytes
      from.on('data', bytes => isSilent || forgotten.has(from) || to.write(convert(bytes))).on('error', () => {})
      from.on('close', () => to.destroy())
    }
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = new URL(target)
  url.hostname = '127.0.0.1'
  url.port = String((server.address() as { port: number }).port)
  return {
    url: url.href,
    setSilent: (silent: boolean) => {
      isSilent = silent
      bytesLeft = Number.POSITIVE_INFINITY
    },
    /** Makes the proxy silent after the server has sent more than `bytes` further bytes. */
    silenceAfter: (bytes: number) => {
      bytesLeft = bytes
    },
    /** Drops all later bytes of the present connections. New connections work. */
    forgetConnections: () => {
      for (const socket of sockets) forgotten.add(socket)
    },
    /** Closes all connections, and immediately closes each new connection. */
    refuse: async () => {
      isRefusing = true
      for (const socket of sockets) socket.destroy()
    },
    accept: () => {
      isRefusing = false
    },
    /** Returns the number of chunks that the client has sent so far. */
    countWrites: () => writes,
    close: async () => {
      for (const socket of sockets) socket.destroy()
      await once(server.close(), 'close')
    },
  }
}

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { waitUntil } from './wait-until.ts'

/** A TCP connection on which a test sends any bytes and reads all bytes that come back. */
export type RawConnection = {
  socket: Socket
  /** Returns everything that the server has sent so far. */
  received(): string
  /** Returns the statuses of all answers so far. */
  statuses(): number[]
  /** Waits until the server has closed the connection. */
  closed(): Promise<void>
  /** Waits until the server has sent text that matches. */
  seen(pattern: RegExp): Promise<void>
}

/** Opens a connection. With `allowHalfOpen`, the client may close its sending side and still read. */
export async function openRaw(port: number, bytes = ''): Promise<RawConnection> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  await once(socket, 'connect')
  let received = ''
  let isClosed = false
  socket.setEncoding('latin1')
  socket.on('data', chunk => {
    received += chunk
  })
  socket.on('error', () => {})
  socket.on('end', () => socket.destroy())
  socket.on('close', () => {
    isClosed = true
  })
  if (bytes) socket.write(bytes, 'latin1')
  return {
    socket,
    received: () => received,
    statuses: () => [...received.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status)),
    closed: () => waitUntil(() => isClosed),
    seen: pattern => waitUntil(() => pattern.test(received)),
  }
}

/** Sends bytes on a new connection and returns the statuses of all answers until the server closes the connection. */
export async function exchangeRaw(port: number, ...parts: string[]): Promise<{ statuses: number[]; text: string }> {
  const connection = await openRaw(port)
  for (const [at, part] of parts.entries()) {
    if (at > 0) await delay(50)
    connection.socket.write(part, 'latin1')
  }
  await connection.closed()

  return { statuses: connection.statuses(), text: connection.received() }
}

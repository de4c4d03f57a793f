import { connect, type Socket } from 'node:net'

/**
 * Opens a TCP connection to a mail server. Names are resolved as the operating system resolves them, so the hosts file
 * applies. Nodemailer would ask the DNS servers first, and a silent DNS server would delay even a mail to `localhost`.
 * @throws if no connection exists after `timeoutMs`
 */
export function openSocket(host: string, port: number, timeoutMs: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port })
    const timer = setTimeout(
      () => socket.destroy(Object.assign(new Error('timeout'), { code: 'ETIMEDOUT' })),
      timeoutMs,
    )
    const settle = (error?: Error) => {
      clearTimeout(timer)
      socket.off('error', settle)
      if (error) reject(error)
      else resolve(socket)
    }
    socket.once('error', settle)
    socket.once('connect', () => settle())
  })
}

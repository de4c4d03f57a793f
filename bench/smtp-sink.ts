import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'

/** A mail server in this process. It accepts every mail and gives the code to the caller of `waitForCode`. */
export type SmtpSink = {
  url: string
  /** Waits for the next mail to an address. @returns the code in the mail */
  waitForCode(email: string): Promise<string>
  close(): void
}

/** Starts the mail server. It understands only as much SMTP as the mailer of the service needs. */
export async function startSmtpSink(): Promise<SmtpSink> {
  const waiting = new Map<string, (code: string) => void>()
  const sockets = new Set<Socket>()
  const server = createServer(socket => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {})
    serve(socket, (email, text) => {
      waiting.get(email)?.(/^(\d{4})\r?$/m.exec(text)![1]!)
      waiting.delete(email)
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  return {
    url: `smtp://127.0.0.1:${port}`,
    waitForCode: email => new Promise(resolve => waiting.set(email, resolve)),
    close() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

function serve(socket: Socket, onMail: (email: string, text: string) => void): void {
  let received = ''
  let email = ''
  let isData = false
  socket.write('220 sink\r\n')
  socket.setNoDelay().on('data', chunk => {
    received += chunk.toString('latin1')
    socket.cork()
    process.nextTick(() => socket.uncork())
    for (;;) {
      const end = received.indexOf(isData ? '\r\n.\r\n' : '\r\n')
      if (end < 0) return
      const part = received.slice(0, end)
      received = received.slice(end + (isData ? 5 : 2))
      if (isData) {
        isData = false
        onMail(email, part)
        socket.write('250 taken\r\n')
        continue
      }
      const command = part.slice(0, 4).toUpperCase()
      if (command === 'RCPT') email = /<(.*?)>/.exec(part)![1]!
      if (command === 'DATA') isData = true
      if (command === 'QUIT') socket.end('221 bye\r\n')
      else
        socket.write(isData ? '354 go on\r\n' : command === 'EHLO' ? '250-sink\r\n250 PIPELINING\r\n' : '250 sink\r\n')
    }
  })
}

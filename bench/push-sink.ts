import { once } from 'node:events'
import { createServer } from 'node:http'

/** A push service in this process. It answers 201 to every push, without a check. */
export type PushSink = {
  /** The value of PUSH_HOSTS for this service. */
  host: string
  /** The number of pushes so far, and the time of the first and of the last one in milliseconds. */
  received: { count: number; firstAt: number; lastAt: number }
  /** Waits until the number of pushes is `count`. */
  waitFor(count: number): Promise<void>
  /** Forgets the pushes so far. */
  reset(): void
  close(): void
}

export async function startPushSink(): Promise<PushSink> {
  const received = { count: 0, firstAt: 0, lastAt: 0 }
  let waiting: { count: number; done: () => void } | undefined
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      received.lastAt = performance.now()
      if (received.count === 0) received.firstAt = received.lastAt
      received.count += 1
      response.writeHead(201).end()
      if (waiting && received.count >= waiting.count) waiting.done()
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  return {
    host: `localhost:${port}`,
    received,
    waitFor: count =>
      new Promise(done => {
        waiting = { count, done }
      }),
    reset() {
      received.count = 0
    },
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}

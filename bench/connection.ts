import { createConnection, type Socket } from 'node:net'

/**
 * An answer to one request. The bytes of `body` are valid until the connection sends its next request. `retryAfter` is
 * the header of a 503, in seconds.
 */
export type Answer = { status: number; body: Buffer; retryAfter?: number }

const READ_BYTES = 64 * 1024

/**
 * A connection that sends one request after another. It parses only the parts of an answer that show where the answer
 * ends. The load generator runs on the same cores as the measured programs, so each microsecond of parsing slows these
 * programs down. The connection reads every answer into the same buffer. When we used a new buffer for each answer, V8
 * ran a garbage collection about three times per second. Each collection took 20 ms, and the bench counted this time as
 * latency of the measured program.
 */
export class Connection {
  readonly #socket: Socket
  #received = Buffer.allocUnsafe(READ_BYTES)
  #length = 0
  #answered: ((answer: Answer) => void) | undefined
  #failed: ((error: Error) => void) | undefined

  constructor(port: number) {
    const onread = {
      buffer: Buffer.allocUnsafe(READ_BYTES),
      callback: (bytes: number, buffer: Uint8Array) => {
        this.#read(buffer.subarray(0, bytes))
        return true
      },
    }
    this.#socket = createConnection({ port, host: '127.0.0.1', noDelay: true, onread })
    this.#socket.on('error', error => this.#fail(error))
    this.#socket.on('close', () => this.#fail(new Error('the program closed the connection')))
  }

  /**
   * Sends a complete request: head and body. Only one request may be in flight.
   * @throws Error if the connection breaks
   */
  send(request: string): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#answered = resolve
      this.#failed = reject
      this.#socket.write(request)
    })
  }

  close(): void {
    this.#failed = undefined
    this.#socket.destroy()
  }

  #fail(error: Error): void {
    this.#failed?.(error)
    this.#failed = undefined
  }

  #read(chunk: Uint8Array): void {
    if (this.#length + chunk.length > this.#received.length) {
      this.#received = Buffer.concat([this.#received], 2 * (this.#length + chunk.length))
    }
    this.#received.set(chunk, this.#length)
    this.#length += chunk.length
    const received = this.#received.subarray(0, this.#length)
    const headEnd = received.indexOf('\r\n\r\n')
    if (headEnd < 0) return
    const head = received.toString('latin1', 0, headEnd)
    const body = findBody(head, received, headEnd + 4)
    if (!body) return
    this.#length = 0
    this.#failed = undefined
    const status = Number(head.slice(9, 12))
    const retryAfter = status === 503 && /\r\nretry-after: *(\d+)/i.exec(head)?.[1]
    this.#answered!({ status, body, ...(retryAfter && { retryAfter: Number(retryAfter) }) })
  }
}

/** Returns the body of an answer, or undefined if the whole body has not yet arrived. */
function findBody(head: string, received: Buffer, start: number): Buffer | undefined {
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
  if (length !== undefined) {
    const end = start + Number(length)
    return received.length < end ? undefined : received.subarray(start, end)
  }
  if (!/\r\ntransfer-encoding: *chunked/i.test(head)) return Buffer.alloc(0)
  return received.subarray(-5).equals(LAST_CHUNK) ? decodeChunks(received.subarray(start)) : undefined
}

const LAST_CHUNK = Buffer.from('0\r\n\r\n')

function decodeChunks(chunked: Buffer): Buffer {
  const parts: Buffer[] = []
  for (let at = 0; ; ) {
    const lineEnd = chunked.indexOf('\r\n', at)
    const size = Number.parseInt(chunked.toString('latin1', at, lineEnd), 16)
    if (!(size > 0)) return Buffer.concat(parts)
    parts.push(chunked.subarray(lineEnd + 2, lineEnd + 2 + size))
    at = lineEnd + 2 + size + 2
  }
}

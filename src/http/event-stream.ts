import type { FastifyReply } from 'fastify'

/** "A heartbeat follows every 20 s": proxies and phones take a quiet connection for a dead one after little more. */
const HEARTBEAT_MS = 20_000

/** How long a client may take to read the rest of a stream that has ended. */
const CLOSE_GRACE_MS = 5_000

/** The bytes that a client may leave unread before the next event. */
const MAX_BUFFERED_BYTES = 64 * 1024

export type EventStream = {
  /** Sends one or several texts of `formatEvent`. Drops a client that leaves more than `MAX_BUFFERED_BYTES` unread. */
  write(text: string): void
  /** Ends the stream after the client has received what was written. */
  end(): void
}

/** Formats a server-sent event. @param json its data; JSON has no line breaks */
export function formatEvent(name: string, json: string): string {
  return `event: ${name}\ndata: ${json}\n\n`
}

/**
 * Turns an answer into a stream of server-sent events.
 * @param until the instant at which the stream ends, at the latest
 * @param ended is called once, however the stream ends; usually the client closes it
 */
export function openEventStream(
  reply: FastifyReply,
  { until, now, ended: onEnd }: { until: Date; now: () => Date; ended: () => void },
): EventStream {
  const response = reply.hijack().raw
  let timer: NodeJS.Timeout

  function write(text: string): void {
    if (response.writableEnded || response.destroyed) return
    // Checked before the write: right after a burst, even the fastest client has unread bytes.
    if (response.writableLength > MAX_BUFFERED_BYTES) response.destroy()
    else response.write(text)
  }

  function sendHeartbeat(): void {
    // Read the clock each time: it may have been set, or the machine may have slept.
    const left = until.getTime() - now().getTime()
    if (left <= 0) return void end()
    write(':\n\n')
    timer = setTimeout(sendHeartbeat, Math.min(left, HEARTBEAT_MS))
  }

  function end(): void {
    response.end()
    // A client that reads nothing more would keep the connection and its buffer forever.
    setTimeout(() => response.destroy(), CLOSE_GRACE_MS).unref()
  }

  // A write may follow after the client has just closed the connection.
  response.on('error', () => {})
  response.once('close', () => {
    clearTimeout(timer)
    onEnd()
  })
  response.writeHead(200, {
    ...(reply.getHeaders() as Record<string, string>),
    ...EVENT_STREAM_HEADERS,
    // The connection must not wait for another request after the stream, least of all at shutdown.
    connection: 'close',
  })
  // The first heartbeat also makes proxies pass on the head at once.
  sendHeartbeat()
  return { write, end }
}

/** `x-accel-buffering` asks nginx, and proxies that follow it, to pass on each event at once. */
export const EVENT_STREAM_HEADERS = { 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' }

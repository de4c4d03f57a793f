import type { FastifyReply } from 'fastify'

/**
 * The maximum time between two heartbeats. Some proxies and phones drop a connection on which no data is sent for
 * slightly more than 20 s.
 */
const HEARTBEAT_MS = 20_000

/** The time that a client has to read the rest of a stream after the service has ended the stream. */
const CLOSE_GRACE_MS = 5_000

/**
 * The maximum number of bytes that may wait in the buffer of a response. If more bytes wait, the next `write` closes
 * the connection.
 */
const MAX_BUFFERED_BYTES = 64 * 1024

export type EventStream = {
  /**
   * Sends events that `formatEvent` has formatted. If more than `MAX_BUFFERED_BYTES` of earlier events still wait in
   * the buffer, closes the connection instead.
   */
  write(text: string): void
  /** Ends the stream. The client still receives the events that were written before. */
  end(): void
}

/** Formats a server-sent event. @param json the event's data, as JSON without line breaks */
export function formatEvent(name: string, json: string): string {
  return `event: ${name}\ndata: ${json}\n\n`
}

/**
 * Turns a reply into a stream of server-sent events.
 * @param until the time at which the stream ends if neither side ends it earlier
 * @param ended the function that is called once, after the stream has ended for any reason
 */
export function openEventStream(
  reply: FastifyReply,
  { until, now, ended: onEnd }: { until: Date; now: () => Date; ended: () => void },
): EventStream {
  const response = reply.hijack().raw
  let timer: NodeJS.Timeout

  function write(text: string): void {
    if (response.writableEnded || response.destroyed) return
    // We check the buffer before the write and not after it. Immediately after a large write, the buffer contains many
    // bytes even if the client reads fast.
    if (response.writableLength > MAX_BUFFERED_BYTES) response.destroy()
    else response.write(text)
  }

  function sendHeartbeat(): void {
    // The operator may set the clock, and the machine may sleep. In both cases, a single timer would end the stream at
    // the wrong time. So we compute the remaining time again at each heartbeat.
    const remainingMs = until.getTime() - now().getTime()
    if (remainingMs <= 0) return void end()
    // A comment without a blank line. Some clients would take a comment with a blank line for an empty event.
    write(':\n')
    timer = setTimeout(sendHeartbeat, Math.min(remainingMs, HEARTBEAT_MS))
  }

  function end(): void {
    response.end()
    // Without this timer, a client that stops reading would keep the connection and its buffer open forever.
    setTimeout(() => response.destroy(), CLOSE_GRACE_MS).unref()
  }

  // A write to a connection that the client has just closed emits an error. Without a listener, the error
  // would end the process.
  response.on('error', () => {})
  response.once('close', () => {
    clearTimeout(timer)
    onEnd()
  })
  response.writeHead(200, {
    ...(reply.getHeaders() as Record<string, string>),
    ...EVENT_STREAM_HEADERS,
    // With this header, the connection closes when the stream ends and does not wait for another request. So an ended
    // stream does not delay a shutdown.
    connection: 'close',
  })
  // A client that closes only its sending side looks like a client that has left. Without this listener, the service
  // would notice only at the next heartbeat that a client has left.
  const { socket } = reply.request.raw
  socket.once('end', end)
  // The first heartbeat makes proxies forward the response's headers immediately.
  sendHeartbeat()
  if (socket.readableEnded) end()
  return { write, end }
}

/**
 * The headers of every stream. `x-accel-buffering: no` asks nginx, and other proxies that support this header, to
 * forward each event immediately.
 */
export const EVENT_STREAM_HEADERS = { 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' }

import type { FastifyReply } from 'fastify'

/** "Heartbeat every 20 s": the least that keeps proxies and phones from taking a quiet connection for a dead one. */
const HEARTBEAT_MS = 20_000

/** How long a reader may take for the rest of a stream that has ended. */
const CLOSE_GRACE_MS = 5_000

/** Bytes that may still be waiting for a reader when there is more to say. */
const MAX_BUFFERED_BYTES = 64 * 1024

export type EventStream = {
  /** Sends what `eventOf` made, one or several. A reader that hasn't taken what went before is dropped instead. */
  write(text: string): void
  /** Ends it in an orderly way; what was written is still sent. */
  end(): void
}

/** One server-sent event. @param json its data, which as JSON has no line breaks */
export function formatEvent(name: string, json: string): string {
  return `event: ${name}\ndata: ${json}\n\n`
}

/**
 * Takes an answer over and makes it a stream of server-sent events, until an instant at most.
 * @param ended called once, however it ends: the client's going is the usual way
 */
export function openEventStream(
  reply: FastifyReply,
  { until, now, ended }: { until: Date; now: () => Date; ended: () => void },
): EventStream {
  const response = reply.hijack().raw
  let timer: NodeJS.Timeout

  function write(text: string): void {
    if (response.writableEnded || response.destroyed) return
    // Looked at before and not after: a burst waits a moment even for the fastest reader.
    if (response.writableLength > MAX_BUFFERED_BYTES) response.destroy()
    else response.write(text)
  }

  function beat(): void {
    // The clock is asked again, since it may have been set, or the machine been asleep.
    const left = until.getTime() - now().getTime()
    if (left <= 0) return void end()
    write(':\n\n')
    timer = setTimeout(beat, Math.min(left, HEARTBEAT_MS))
  }

  function end(): void {
    response.end()
    // One who takes nothing any more would keep the connection, and what waits in it, for as long as it pleases.
    setTimeout(() => response.destroy(), CLOSE_GRACE_MS).unref()
  }

  // Written to although the client has just gone.
  response.on('error', () => {})
  response.once('close', () => {
    clearTimeout(timer)
    ended()
  })
  response.writeHead(200, {
    ...(reply.getHeaders() as Record<string, string>),
    ...EVENT_STREAM_HEADERS,
    // It isn't to wait for another request once this one is over, least of all at shutdown.
    connection: 'close',
  })
  // The comment also makes proxies and clients see the head at once.
  beat()
  return { write, end }
}

/** Asks nginx, and whoever took its habit over, not to hold the events back. */
export const EVENT_STREAM_HEADERS = { 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' }

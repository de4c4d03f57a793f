import type { IncomingMessage, ServerResponse } from 'node:http'

const waiting = new WeakMap<IncomingMessage, ServerResponse>()

/** Stores that the client waits for the status 100 before it sends the body. */
export function holdContinue(request: IncomingMessage, response: ServerResponse): void {
  waiting.set(request, response)
}

/** Sends the status 100 if the client waits for it. Call this before reading a body. */
export function sendContinue(request: IncomingMessage): void {
  waiting.get(request)?.writeContinue()
  waiting.delete(request)
}

import type { App } from './route.ts'

/**
 * Prepares the app for the time between the request to stop and the moment at which it closes its port. During this
 * time, each answer has `Connection: close`. So load balancers do not use their open connections again.
 */
export function closeConnectionsAfterAnswers(app: App, stopping: AbortSignal): void {
  app.server.prependListener('request', (_request, response) => {
    if (stopping.aborted) response.setHeader('connection', 'close')
  })
}

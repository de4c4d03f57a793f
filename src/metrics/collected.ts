import type { Registry } from 'prom-client'
import { countDroppedLines } from '../log-writer.ts'

/** Registers the counters whose values other parts of the process count. The values are read at each scrape. */
export function registerCollected(
  client: typeof import('prom-client'),
  registry: Registry,
  countEmbeddedRestarts: () => number,
): void {
  const register = (name: string, help: string, read: () => number) =>
    new client.Counter({
      name: `courtside_${name}`,
      help,
      registers: [registry],
      collect() {
        this.reset()
        this.inc(read())
      },
    })
  register(
    'log_lines_dropped_total',
    'Log lines that were dropped because they could not be written',
    countDroppedLines,
  )
  register(
    'embedded_restarts_total',
    'Restarts of the embedded PostgreSQL after it ended by itself',
    countEmbeddedRestarts,
  )
}

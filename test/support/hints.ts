import { after, before } from 'node:test'
import pg from 'pg'
import { HINT_CHANNEL } from '../../src/db/channels.ts'
import { channelName } from '../../src/db/own-schema.ts'
import { DEFAULT_SCHEMA } from '../../src/db/postgres-url.ts'
import type { Harness } from './app.ts'
import { waitUntil } from './wait-until.ts'

/**
 * Listens for hints on a separate connection. Call this function at the top of a suite.
 */
export function listenForHints(h: Harness) {
  const payloads: string[] = []
  let client: pg.Client
  before(async () => {
    client = new pg.Client({ connectionString: h.database.url })
    await client.connect()
    await client.query(`listen "${channelName(DEFAULT_SCHEMA, HINT_CHANNEL)}"`)
    client.on('notification', ({ payload }) => payloads.push(payload!))
  })
  after(() => client.end())
  return {
    payloads,
    /** Waits for payloads until there are `count` of them. Removes all payloads, and returns them. */
    async take(count = 1): Promise<string[]> {
      await waitUntil(() => payloads.length >= count)
      return payloads.splice(0)
    },
    /** Waits until all hints have arrived that were sent before. */
    settle: () => client.query('select 1'),
  }
}

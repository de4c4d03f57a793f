import type { FastifyBaseLogger } from 'fastify'
import { onChannel } from './own-schema.ts'
import type { Statements } from './sql.ts'

/** The channel of the messages that wake the workers when the outbox has new rows. */
export const OUTBOX_CHANNEL = 'outbox'

/** The time for which hints are collected. */
const COLLECT_MS = 5

/**
 * Creates a function that makes the workers of all processes claim rows of the outbox. Call it after the commit. A
 * NOTIFY inside the transaction would hold a lock of the whole server until the commit has reached the disk. Commits
 * could then not share a flush. The NOTIFY of a hint waits for no flush. A lost hint delays a delivery by at most a
 * second, because workers also poll the outbox every second.
 */
export function createOutboxHint(sql: Statements, log: FastifyBaseLogger): () => void {
  let isPending = false
  async function send(): Promise<void> {
    isPending = false
    try {
      await sql`select set_config('synchronous_commit', 'off', true), pg_notify(${onChannel(OUTBOX_CHANNEL)}, '')`
    } catch (error) {
      log.debug({ err: error }, 'could not send a hint about the outbox')
    }
  }
  return () => {
    if (isPending) return
    isPending = true
    setTimeout(send, COLLECT_MS)
  }
}

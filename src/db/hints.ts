import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyBaseLogger } from 'fastify'
import { AppError } from '../errors.ts'
import { HINT_CHANNEL } from './channels.ts'
import { onChannel } from './own-schema.ts'
import type { Statements } from './sql.ts'

/** The minimum time between two NOTIFY statements. The hints of this time are collected. */
const COLLECT_MS = 5

const RETRY_MS = 250

/** If the reply to a commit was lost, the commit may complete later. So its hints are repeated after this time. */
const REPEAT_MS = 10_000

/** PostgreSQL refuses a payload of 8000 bytes or more. */
const MAX_PAYLOAD_BYTES = 7_999

/** An item of a payload: `o` for new rows in the outbox, or the id of a user whose inbox has changed. */
export type Hint = string

/** The outbox has new rows. A decoy is also a row, so a payload does not reveal which addresses have accounts. */
export const OUTBOX_HINT: Hint = 'o'

/**
 * Returns the hint that the inbox of a user has changed. Only processes of the previous version need the id of a new
 * notification: they read the rows that a payload names. This version ignores the id.
 */
export function inboxHint(userId: number, notificationId?: number): Hint {
  return notificationId === undefined ? `${userId}` : `${userId}:${notificationId}`
}

/** Returns the content of a payload, which may come from a process of the previous version. */
export function readHints(payload: string): { hasDelivery: boolean; userIds: number[] } {
  const items = payload.split(',')
  const hasDelivery = items[0] === OUTBOX_HINT
  return { hasDelivery, userIds: (hasDelivery ? items.slice(1) : items).map(item => Number.parseInt(item, 10)) }
}

/** Returns the payloads for a set of hints: the items with commas between them, and `o` first. */
export function formatPayloads(hints: ReadonlySet<Hint>): string[] {
  const payloads = hints.has(OUTBOX_HINT) ? [OUTBOX_HINT] : []
  for (const hint of hints) {
    if (hint === OUTBOX_HINT) continue
    const last = payloads.at(-1)
    if (last === undefined || last.length + 1 + hint.length > MAX_PAYLOAD_BYTES) payloads.push(hint)
    else payloads[payloads.length - 1] = `${last},${hint}`
  }
  return payloads
}

export type Hints = {
  /**
   * Runs a write, and sends its hints after the commit. If the reply to the commit is lost, sends them
   * immediately and again after 10 s.
   * @param write adds its hints to `changed` before it commits
   */
  sendAfter<T>(write: (changed: Set<Hint>) => Promise<T>): Promise<T>
  /** Sends all remaining hints, and repeats those whose 10 s have not ended. Call this before the pool closes. */
  close(): Promise<void>
}

/**
 * Creates the sender of a process's hints: NOTIFY messages that make other processes read the database. A hint
 * carries no data, so a lost hint only delays the change until the next read.
 *
 * A NOTIFY inside the transaction of the write would hold a lock of the whole server until the commit has reached the
 * disk and the synchronous standby. Commits could then not share a flush. So the sender sends hints in a separate
 * transaction that waits for no disk flush. It sends a hint immediately if it sent none in the last milliseconds.
 * Otherwise it first collects the hints of all commits in this time.
 */
export function createHints(sql: Statements, log: FastifyBaseLogger): Hints {
  const waiting = new Set<Hint>()
  const repeats = new Set<() => void>()
  const closing = new AbortController()
  let running: Promise<void> | undefined

  function send(hints: Iterable<Hint>): void {
    for (const hint of hints) waiting.add(hint)
    if (waiting.size > 0) running ??= run()
  }

  function repeat(hints: ReadonlySet<Hint>): void {
    const sendAgain = () => {
      clearTimeout(timer)
      repeats.delete(sendAgain)
      send(hints)
    }
    const timer = setTimeout(sendAgain, REPEAT_MS)
    repeats.add(sendAgain)
  }

  /** Sends one statement at a time, so NOTIFYs that wait for the server's lock do not fill all connections. */
  async function run(): Promise<void> {
    for (let isFailing = false; waiting.size > 0; await pause(isFailing ? RETRY_MS : COLLECT_MS, closing.signal)) {
      const isLastAttempt = closing.signal.aborted
      const hints = new Set(waiting)
      waiting.clear()
      try {
        await sql`
          select set_config('synchronous_commit', 'off', true), pg_notify(${onChannel(HINT_CHANNEL)}, payload)
          from unnest(${formatPayloads(hints)}::text[]) as payload`
        isFailing = false
      } catch (error) {
        if (!isFailing) log.warn({ err: error }, 'cannot send hints to other processes; retrying')
        isFailing = true
        if (isLastAttempt) break
        for (const hint of hints) waiting.add(hint)
      }
    }
    running = undefined
  }

  return {
    async sendAfter(write) {
      const changed = new Set<Hint>()
      try {
        const result = await write(changed)
        send(changed)
        return result
      } catch (error) {
        if (error instanceof AppError && error.code === 'unavailable' && changed.size > 0) {
          send(changed)
          repeat(changed)
        }
        throw error
      }
    },
    async close() {
      closing.abort()
      for (const sendAgain of [...repeats]) sendAgain()
      await running
    },
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => {})
}

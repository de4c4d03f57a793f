import type { FastifyBaseLogger } from 'fastify'

/** An operator needs one line about a fault of a push service, not one line for each push. */
const REPORT_EVERY_MS = 60_000
/** Endpoints have few hosts. The limit only bounds the memory if a pattern of PUSH_HOSTS matches many hosts. */
const MAX_REPORTED = 1_000

export type Report = (level: 'warn' | 'error', details: Record<string, unknown>, message: string) => void

/**
 * Creates a function that logs a fault, but the same fault at most once a minute. The details must not contain an
 * endpoint, because everyone who knows the endpoint may push to the device if no key protects it.
 */
export function createReport(log: FastifyBaseLogger): Report {
  const reported = new Map<string, { at: number; left: number }>()
  return (level, details, message) => {
    const fault = JSON.stringify([details, message])
    const known = reported.get(fault)
    const now = performance.now()
    if (known && now - known.at < REPORT_EVERY_MS) {
      known.left += 1
      return
    }
    if (reported.size >= MAX_REPORTED) reported.clear()
    reported.set(fault, { at: now, left: 0 })
    log[level]({ ...details, ...(known?.left && { unreported: known.left }) }, message)
  }
}

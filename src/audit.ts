import type { FastifyRequest } from 'fastify'
import { clientKey } from './http/client-address.ts'

/** All events of the audit trail, with their log levels. docs/operations.md explains each event. */
export const AUDIT_EVENTS = {
  sign_up: 'info',
  sign_in: 'info',
  sign_in_failed: 'info',
  refresh_refused: 'info',
  refresh_repeated: 'info',
  refresh_reuse: 'warn',
  logout: 'info',
  deletion: 'info',
  deletion_failed: 'info',
  guess_budget_spent: 'warn',
  key_refused: 'warn',
  preferences_changed: 'info',
  unsubscribe: 'info',
  push_subscribed: 'info',
  push_unsubscribed: 'info',
  operator_command: 'info',
} as const

/** The events that requests cause. Commands of an operator write their lines in `cli/audited.ts`. */
export type AuditEvent = Exclude<keyof typeof AUDIT_EVENTS, 'operator_command'>

/**
 * Writes a line of the audit trail. The line contains the network address of the client. No other log line may contain
 * this address, and no log line at all may contain an e-mail address.
 * @param who the user and the session of the request, if they are known. The default is the caller that the guard has
 *   set
 */
export function audit(
  request: FastifyRequest,
  event: AuditEvent,
  who: { userId: number; sessionId?: string } | undefined = request.caller,
): void {
  request.log[AUDIT_EVENTS[event]](
    { audit: event, user_id: who?.userId, session_id: who?.sessionId, client: clientKey(request) },
    'audit',
  )
}

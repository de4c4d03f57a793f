import type { FastifyRequest } from 'fastify'
import { clientKey } from './http/client-address.ts'

/** Every event of the audit trail with the level of its line. The list is closed; docs/operations.md says what each means. */
export const AUDIT_EVENTS = {
  sign_up: 'info',
  sign_in: 'info',
  sign_in_failed: 'info',
  refresh_refused: 'info',
  refresh_reuse: 'warn',
  logout: 'info',
  deletion: 'info',
  deletion_failed: 'info',
  key_refused: 'warn',
} as const

export type AuditEvent = keyof typeof AUDIT_EVENTS

/**
 * Writes a line of the audit trail. Nowhere else is a client's address logged, and never an e-mail address.
 * @param who the user and session, where they are known: by default the caller that the guard let in
 */
export function audit(
  request: FastifyRequest,
  event: AuditEvent,
  who: { userId: number; sessionId: string } | undefined = request.caller,
): void {
  request.log[AUDIT_EVENTS[event]](
    { audit: event, user_id: who?.userId, session_id: who?.sessionId, client: clientKey(request) },
    'audit',
  )
}

/**
 * The NOTIFY channels of the service. own-schema.ts adds the schema to the names. Processes of the previous version use
 * the same names, so both versions receive each other's messages during an upgrade.
 */

/** Carries the hints about inboxes and the outbox: see hints.ts. The previous version used it for inboxes only. */
export const HINT_CHANNEL = 'notification'

/** Carries the ends of sessions: see auth/session-ended.ts. */
export const SESSION_ENDED_CHANNEL = 'session_ended'

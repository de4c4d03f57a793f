import type { Listener } from '../db/listener.ts'

/**
 * The NOTIFY channel on which all serving processes learn of ended sessions. The payload is `<user> <session>`, the ids
 * of the user and of the session. If all sessions of a user have ended, the payload is `<user>`, the id of the user.
 */
export const SESSION_ENDED = 'session_ended'

/** An ended session. If `sessionId` is undefined, all sessions of the user have ended. */
export type EndedSession = { userId: number; sessionId?: string | undefined }

/**
 * Calls `handler` whenever any process ends a session before the session expires. `handler` is called a few
 * milliseconds after the commit of the statement that ends the session.
 */
export function onEnded(listener: Listener, handler: (ended: EndedSession) => void): void {
  listener.on(SESSION_ENDED, payload => {
    const [userId, sessionId] = payload.split(' ')
    handler({ userId: Number(userId), sessionId })
  })
}

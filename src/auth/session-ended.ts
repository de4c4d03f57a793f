import type { Listener } from '../db/listener.ts'

/**
 * The NOTIFY channel on which all processes learn of ended sessions. The payload is `<user> <session>`. If all sessions
 * of a user have ended, it is `<user>`.
 */
export const SESSION_ENDED = 'session_ended'

/** An ended session. If `sessionId` is undefined, all sessions of the user have ended. */
export type EndedSession = { userId: number; sessionId?: string | undefined }

/**
 * Calls `handler` for every session that is ended before it expires, by any process. The call comes some milliseconds
 * after the commit.
 */
export function onEnded(listener: Listener, handler: (ended: EndedSession) => void): void {
  listener.on(SESSION_ENDED, payload => {
    const [userId, sessionId] = payload.split(' ')
    handler({ userId: Number(userId), sessionId })
  })
}

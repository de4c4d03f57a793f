import { SESSION_ENDED_CHANNEL } from '../db/channels.ts'
import type { Listener } from '../db/listener.ts'

/** An ended session. If `sessionId` is undefined, all sessions of the user have ended. */
export type EndedSession = { userId: number; sessionId?: string | undefined }

/**
 * Calls `handler` whenever any process ends a session before the session expires. `handler` is called a few
 * milliseconds after the commit of the statement that ends the session. The statement itself sends the NOTIFY, so a
 * stream ends even if the process that ended the session dies. Sessions end too rarely for the lock of NOTIFY to
 * matter.
 *
 * The payload is `<user> <session>`, the ids of the user and of the session. If all sessions of a user have ended, the
 * payload is `<user>`, the id of the user.
 */
export function onEnded(listener: Listener, handler: (ended: EndedSession) => void): void {
  listener.on(SESSION_ENDED_CHANNEL, payload => {
    const [userId, sessionId] = payload.split(' ')
    handler({ userId: Number(userId), sessionId })
  })
}

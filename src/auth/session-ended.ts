import type { Listener } from '../db/listener.ts'

/**
 * The channel that tells every process about ended sessions. The payload is `<user> <session>`, or `<user>` for all
 * sessions of the user.
 */
export const SESSION_ENDED = 'session_ended'

/** An ended session of a user. Without a `sessionId` it stands for all sessions of the user. */
export type EndedSession = { userId: number; sessionId?: string | undefined }

/** Calls `handler` for every session that any process ends before its time, some milliseconds after the commit. */
export function onEnded(listener: Listener, handler: (ended: EndedSession) => void): void {
  listener.on(SESSION_ENDED, payload => {
    const [userId, sessionId] = payload.split(' ')
    handler({ userId: Number(userId), sessionId })
  })
}

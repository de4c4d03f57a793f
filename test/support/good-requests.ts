import { type Harness, INTAKE_KEY } from './app.ts'
import type { ListedOperation } from './documented.ts'
import { openStream } from './event-stream.ts'
import { makeNotifications, makeUser } from './factories.ts'
import { cloudEvent, newGameId } from './games.ts'
import { newEmail, payloadOf, profile, queuedCode } from './scenario.ts'

/** Returns the credentials that an operation takes. @param token of a user */
export function credentials({ operation }: ListedOperation, token: string): string | undefined {
  const [scheme = {}] = operation.security
  if ('intakeKey' in scheme) return INTAKE_KEY
  return 'bearer' in scheme ? token : undefined
}

/** Makes a user with one notification. @returns the user, and the path of the operation with that notification's id */
export async function makeReader(h: Harness, { path }: ListedOperation) {
  const user = await makeUser(h)
  const [notificationId] = await makeNotifications(h, user.id, 1)
  return { ...user, path: path.replace('{id}', String(notificationId)) }
}

/** Sends the request that an operation is for, as a new user. @param address of the app, for the stream */
export async function sendGoodRequest(h: Harness, listed: ListedOperation, address: string) {
  const { id, email, token, path } = await makeReader(h, listed)
  const newcomer = newEmail()
  const askCode = (body: object, token?: string) => h.call('POST', '/api/v1/auth/request-otp', { body, token })
  const bodies: Record<string, () => unknown> = {
    requestOtp: () => profile(newcomer),
    verifyOtp: async () => {
      await askCode(profile(newcomer))
      return { email: newcomer, code: await queuedCode(h, newcomer) }
    },
    deleteMe: async () => {
      await askCode({ email }, token)
      return { code: await queuedCode(h, email, payloadOf(token).sid) }
    },
    assessLevel: async () => ({ game_level_id: (await h.call('GET', '/api/v1/game-levels')).body.data[0].id }),
    reportEvents: () => cloudEvent('game_full', { game_id: newGameId(), creator_id: id, player_ids: [id] }),
  }
  if (listed.operation.operationId === 'streamNotifications') {
    const stream = await openStream(address, token)
    stream.close()
    return { status: stream.response.statusCode!, headers: stream.response.headers, text: '' }
  }
  const body = await bodies[listed.operation.operationId]?.()
  return h.call(listed.method, path, { token: credentials(listed, token), body })
}

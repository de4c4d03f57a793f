import type { Keys } from '../keys.ts'
import type { NotificationType } from '../notification-types.ts'

/** The path of the unsubscribe page. A token follows it. */
export const UNSUBSCRIBE_PATH = '/unsubscribe'

/**
 * Returns the address that turns off the mails to a user about one type, or about all types. It needs no sign-in and no
 * row in the database. The token is the number of the user and 128 bits of a keyed hash, and can do nothing else.
 * @param publicUrl the address of the service, without a slash at its end
 */
export function buildUnsubscribeUrl(keys: Keys, publicUrl: string, userId: number, type?: NotificationType): string {
  const url = `${publicUrl}${UNSUBSCRIBE_PATH}/${userId}.${keys.signLink(toSignedText(userId))}`
  return type === undefined ? url : `${url}?type=${type}`
}

/** Returns the user of a token, or undefined if no secret of this process made the token. */
export function readUnsubscribeToken(keys: Keys, token: string): number | undefined {
  const [, digits, signature] = /^([1-9]\d{0,15})\.([\w-]+)$/.exec(token) ?? []
  if (digits === undefined) return undefined
  const userId = Number(digits)
  return keys.matchesLink(signature!, toSignedText(userId)) ? userId : undefined
}

function toSignedText(userId: number): string {
  return `unsubscribe:${userId}`
}

/** Returns whether two tokens belong to the same user. Returns true if one of the tokens is unreadable. */
export function isSameUser(token: string, other: string): boolean {
  const [subject, otherSubject] = [readClaims(token).sub, readClaims(other).sub]
  return subject === undefined || otherSubject === undefined || subject === otherSubject
}

/** Returns the claims of a token, or an empty object if the token is unreadable. */
export function readClaims(token: string): { sub?: unknown; sid?: unknown } {
  try {
    return JSON.parse(atob(token.split('.')[1]!.replaceAll('-', '+').replaceAll('_', '/'))) ?? {}
  } catch {
    return {}
  }
}

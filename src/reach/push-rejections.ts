import type { Push } from './push-look.ts'

type Attempt = { outcome: string; retryAt?: Date }

/** If a push service rejects the pushes of fewer users, the reason may be their subscriptions. */
const MIN_USERS = 5
/** Endpoints have few hosts. The limit only bounds the memory if a pattern of PUSH_HOSTS matches many hosts. */
const MAX_KEYS = 1_000

/**
 * Creates a function that turns the outcome `rejected` into `blocked` if a push service has rejected the pushes of at
 * least five users and has taken no push with the same key since. Then it refuses our key. A single user must not be
 * able to cause this outcome, because an alert depends on it.
 */
export function createRejections() {
  const usersByKey = new Map<string, Set<number>>()
  return (attempt: Attempt, host: string, subscription: Push['subscription']): Attempt => {
    const key = `${host} ${subscription.public_key}`
    if (attempt.outcome === 'delivered') usersByKey.delete(key)
    if (attempt.outcome !== 'rejected') return attempt
    if (usersByKey.size >= MAX_KEYS) usersByKey.clear()
    const users = usersByKey.get(key) ?? new Set()
    usersByKey.set(key, users)
    if (users.size < MIN_USERS) users.add(subscription.user_id)
    return users.size < MIN_USERS ? attempt : { ...attempt, outcome: 'blocked' }
  }
}

import type { Judgement } from './push-answer.ts'
import type { Push } from './push-look.ts'

/** If a push service rejects the pushes of fewer users, the reason may be their subscriptions. */
const MIN_USERS = 5
/** A rejection counts for this time. */
const MAX_AGE_MS = 24 * 3_600_000
/** Endpoints have few hosts. The limit only bounds the memory if a pattern of PUSH_HOSTS matches many hosts. */
const MAX_KEYS = 1_000

/**
 * Creates a function that turns the outcome `rejected` into `blocked` if the push service seems to refuse our key. In
 * the last 24 hours it has rejected the pushes of at least five users, and has taken no push with this key in between.
 * An alert depends on this outcome, so a single user must not be able to cause it.
 */
export function createRejectionCheck(now: () => Date) {
  /** The time of each user's last rejection, by host and key. The latest rejection is the last entry. */
  const rejectionsByKey = new Map<string, Map<number, number>>()
  return (judgement: Judgement, host: string, subscription: Push['subscription']): Judgement => {
    const key = `${host} ${subscription.public_key}`
    if (judgement.outcome === 'delivered') rejectionsByKey.delete(key)
    if (judgement.outcome !== 'rejected') return judgement
    if (!rejectionsByKey.has(key) && rejectionsByKey.size >= MAX_KEYS) rejectionsByKey.clear()
    const rejections = rejectionsByKey.get(key) ?? new Map<number, number>()
    rejectionsByKey.set(key, rejections)
    rejections.delete(subscription.user_id)
    rejections.set(subscription.user_id, now().getTime())
    for (const [userId, at] of rejections) {
      const isOld = now().getTime() - at > MAX_AGE_MS
      if (isOld || rejections.size > MIN_USERS) rejections.delete(userId)
    }
    return rejections.size < MIN_USERS ? judgement : { ...judgement, outcome: 'blocked' }
  }
}

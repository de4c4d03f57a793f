/** A code is valid for 15 minutes after the request for the code. */
export const CODE_LIFETIME_MS = 15 * 60_000

/**
 * Each code allows at most this number of attempts. The table `sign_in_code` has a check constraint with the same
 * limit.
 */
export const MAX_ATTEMPTS = 5

/** The cooldown: the minimum time between two codes to one address. All lanes of an address share the cooldown. */
export const SEND_COOLDOWN_SECONDS = 60

// The wait before the next code is 60 s. The first 10 wrong guesses do not lengthen the wait. From then on, every 5
// further wrong guesses double the wait: 2 min, 4 min, and so on, up to 4 h
// (decisions.md, "waits after wrong guesses").
export const GUESSES_BEFORE_BACKOFF = 10
export const GUESSES_PER_DOUBLING = 5
export const MAX_WAIT_SECONDS = 4 * 3600

/**
 * The number of doublings after which the wait reaches its maximum. `storeCode` multiplies the cooldown by a power of
 * 2, and limits the exponent to `MAX_DOUBLINGS`. Without this limit, the power would overflow after some thousand wrong
 * guesses.
 */
export const MAX_DOUBLINGS = Math.ceil(Math.log2(MAX_WAIT_SECONDS / SEND_COOLDOWN_SECONDS))

/**
 * The maximum age of the last code of a pending sign-up. Up to this age, a request without a profile resumes the
 * sign-up (decisions.md, "how long a sign-up stays pending").
 */
export const PENDING_SIGN_UP_MS = 24 * 3_600_000

/** If no sign-in succeeds, the service keeps the count of wrong guesses for this time after the last code. */
export const WRONG_GUESSES_KEPT_MS = 30 * 86_400_000

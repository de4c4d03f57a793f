/** "A code of 4 digits is emailed and stored for 15 minutes." */
export const CODE_LIFETIME_MS = 15 * 60_000

/**
 * "At most 5 verification attempts are allowed before it expires." A check constraint of
 * `sign_in_code` enforces this limit too.
 */
export const MAX_ATTEMPTS = 5

/**
 * "A new code cannot be sent before 60 seconds have passed since the previous send." All lanes of an address share this
 * cooldown.
 */
export const SEND_COOLDOWN_SECONDS = 60

// The wait before the next code is 60 s. With every 5 wrong guesses after the tenth, the wait doubles: 2 min, 4 min …
// at most 4 h (decisions.md, "waits after wrong guesses").
export const GUESSES_BEFORE_BACKOFF = 10
export const GUESSES_PER_DOUBLING = 5
export const MAX_WAIT_SECONDS = 4 * 3600

/**
 * The number of doublings after which the wait reaches its maximum. Without this limit, the power of 2 in `storeCode`
 * would overflow after some thousand wrong guesses.
 */
export const MAX_DOUBLINGS = Math.ceil(Math.log2(MAX_WAIT_SECONDS / SEND_COOLDOWN_SECONDS))

/**
 * How long after its last code a request without a profile can resume a sign-up (decisions.md, "how long a sign-up
 * stays pending").
 */
export const PENDING_SIGN_UP_MS = 24 * 3_600_000

/** How long the count of wrong guesses is kept if no sign-in succeeds. */
export const WRONG_GUESSES_KEPT_MS = 30 * 86_400_000

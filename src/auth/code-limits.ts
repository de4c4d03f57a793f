/** "A code of 4 digits is emailed and stored for 15 minutes." */
export const CODE_LIFETIME_MS = 15 * 60_000

/** "At most 5 verification attempts." The table `sign_in_code` checks it too. */
export const MAX_ATTEMPTS = 5

/**
 * "A new code cannot be sent before 60 seconds have passed since the previous send." The cooldown is over all lanes of
 * an address.
 */
export const SEND_COOLDOWN_SECONDS = 60

// "From the tenth on, every further 5 double the wait before the next send (60 s, 2 min, 4 min … at most 4 h)."
export const GUESSES_BEFORE_BACKOFF = 10
export const GUESSES_PER_DOUBLING = 5
export const MAX_WAIT_SECONDS = 4 * 3600

/** The doublings that reach the longest wait. Without the bound the power overflows after some thousand guesses. */
export const MAX_DOUBLINGS = Math.ceil(Math.log2(MAX_WAIT_SECONDS / SEND_COOLDOWN_SECONDS))

/** How long the e-mail address alone resumes a sign-up (decisions.md, "how long a sign-up stays pending"). */
export const PENDING_SIGN_UP_MS = 24 * 3_600_000

/** How long wrong guesses are kept without a successful sign-in. */
export const WRONG_GUESSES_KEPT_MS = 30 * 86_400_000

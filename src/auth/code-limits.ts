/** A code is valid for 15 minutes after the last request for it. */
export const CODE_LIFETIME_MS = 15 * 60_000

/** A request for a code repeats the code if the code was first made less than this time ago. */
export const MAX_REPEAT_AGE_MS = 10 * 60_000

/**
 * Each code allows at most this number of attempts. The table `sign_in_code` has a check constraint with the same
 * limit.
 */
export const MAX_ATTEMPTS = 5

/** Of the attempts at a code, this number is open to callers who did not request the code. */
export const MAX_OTHER_ATTEMPTS = 2

/**
 * The minimum time between two mails to strangers about one address, and the minimum time between two mails to one
 * known client.
 */
export const SEND_COOLDOWN_SECONDS = 60

/**
 * After this number of mails about an address, each wait of the network doubles: 2 min, 4 min, and so on, up to 4 h
 * (decisions.md, "how long a network that asks often must wait").
 */
export const MAILS_BEFORE_BACKOFF = 3
export const MAX_WAIT_SECONDS = 4 * 3600

/**
 * The number of doublings after which the wait reaches its maximum. Without this limit, the power of 2 would overflow
 * after some thousand mails.
 */
export const MAX_DOUBLINGS = Math.ceil(Math.log2(MAX_WAIT_SECONDS / SEND_COOLDOWN_SECONDS))

/** The count of mails to a network starts again at zero when the last mail is older than this time. */
export const MAILS_KEPT_MS = 7 * 86_400_000

/** The number of mails that a session gets in its life as a known client. */
export const MAX_KNOWN_CLIENT_MAILS = 5

/** The number of an account's newest sessions that can be known clients. */
export const MAX_KNOWN_CLIENTS = 5

/** The maximum age of a session that is a known client, unless the session still runs. */
export const KNOWN_CLIENT_MS = 90 * 86_400_000

/**
 * The maximum age of the last code of a pending sign-up. Up to this age, a request without a profile from the same
 * network resumes the sign-up (decisions.md, "how long a sign-up stays pending").
 */
export const PENDING_SIGN_UP_MS = 3_600_000

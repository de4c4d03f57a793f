import type { Profile } from '../accounts/users.ts'
import type { SignUpLimits } from '../code-settings.ts'
import type { Language } from '../language.ts'
import type { Buckets } from './budgets.ts'

/**
 * The caller of a code route. A known client has a `sessionId`. `network` is the keyed hash of the caller's network.
 */
export type Requester = { email: string; sessionId: string | undefined; network: Buffer }

/** The limits of the installation on codes. */
export type Rules = { buckets: Buckets; signUpLimits: SignUpLimits | undefined }

/** The values of the statement of `issueCode`. The files with the steps of the statement share this type. */
export type NewCode = Requester &
  Rules & {
    signsUp: boolean
    profile: Profile | undefined
    language: Language | undefined
    id: string
    /** The keyed hashes of the parts. */
    macs: Buffer[]
    /** The first part sealed, the first two parts sealed together, and so on. */
    seals: string[]
    /** The column `mac` of a code of several parts. No guess matches it. */
    randomMac: Buffer
    now: Date
    expiresAt: Date
  }

import type { Profile } from '../accounts/users.ts'
import { type Fragment, fragment } from '../db/statement.ts'

// These fragments contain every use of the columns of a profile in the statements of src/auth. The table `sign_in_code`
// stores the profile of a sign-up in them until the user types the code.

/** The columns of a profile in the tables `sign_in_code` and `app_user`. */
export const PROFILE_COLUMNS = fragment`first_name, last_name, terms_version`

/** The values of PROFILE_COLUMNS if `purpose` is a sign-up, and nulls otherwise. */
export const PROFILE_OF_SIGN_UP = fragment`
  case when purpose = 'sign_up' then first_name end, case when purpose = 'sign_up' then last_name end,
  case when purpose = 'sign_up' then terms_version end`

/** The assignments with which `on conflict` replaces the profile of a row. */
export const REPLACE_PROFILE = fragment`
  first_name = excluded.first_name, last_name = excluded.last_name, terms_version = excluded.terms_version`

/** The assignments that delete the profile of a row of `sign_in_code`. */
export const DELETE_PROFILE = fragment`
  first_name = null, last_name = null, terms_version = null, terms_accepted_at = null`

/** Whether the request has the same profile as the requester's code `own`. */
export const HAS_SAME_PROFILE = fragment`
  (own.first_name, own.last_name, own.terms_version)
    is not distinct from (purpose.first_name, purpose.last_name, purpose.terms_version)`

/** Returns the columns of the profile of the request. Without a profile, the request resumes the sign-up of `own`. */
export function resumeProfile(profile: Profile | undefined): Fragment {
  return fragment`
    coalesce(${profile?.firstName}, own.first_name) as first_name,
    coalesce(${profile?.lastName}, own.last_name) as last_name,
    coalesce(${profile?.termsVersion}, own.terms_version) as terms_version`
}

import type { Profile } from '../accounts/users.ts'
import { type Fields, invalid } from '../errors.ts'
import { canonicalEmail } from './email-address.ts'
import { INVALID_EMAIL } from './schema.ts'

type Credentials = { email: string; first_name?: string; last_name?: string; accept_cgu?: boolean }

/**
 * Reads the body of a request for a code. If the body contains `first_name`, `last_name` or `accept_cgu`, the request
 * is a sign-up, and all three fields are required.
 * @returns the canonical e-mail address, and the profile of a sign-up. For a sign-in, `profile` is undefined
 * @throws AppError 422 that names each invalid field
 */
export function readCredentials(
  { email: input, first_name: firstName, last_name: lastName, accept_cgu: accepted }: Credentials,
  termsVersion: string,
): { email: string; profile: Profile | undefined } {
  const faults: Fields = {}
  const email = canonicalEmail(input)
  if (email === undefined) faults.email = [INVALID_EMAIL]
  const isSignUp = firstName !== undefined || lastName !== undefined || accepted !== undefined
  if (isSignUp) {
    if (firstName === undefined) faults.first_name = [describeMissing('first_name')]
    if (lastName === undefined) faults.last_name = [describeMissing('last_name')]
    if (accepted !== true) {
      faults.accept_cgu = [
        { fr: 'Les conditions d’utilisation doivent être acceptées.', en: 'The terms must be accepted.' },
      ]
    }
  }
  if (Object.keys(faults).length > 0) throw invalid(faults)
  const profile = { firstName: firstName!, lastName: lastName!, termsVersion }
  return { email: email!, profile: isSignUp ? profile : undefined }
}

/**
 * Returns the canonical spelling of an e-mail address.
 * @throws AppError 422 that names the field `email` if the address is invalid
 */
export function readEmail(input: string): string {
  const email = canonicalEmail(input)
  if (email === undefined) throw invalid({ email: [INVALID_EMAIL] })
  return email
}

function describeMissing(field: string) {
  return { fr: `Le champ ${field} est obligatoire.`, en: `The ${field} field is required.` }
}

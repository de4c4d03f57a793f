import { CourtsideError } from './error.ts'

/** The result of a right part of a code that has more parts. The user must enter the next part. */
export type NextPart = {
  next_part: true
  /** A text for the user that asks for the next part. */
  message: string
  access_token?: undefined
  is_new_user?: undefined
}

/** The result of a code whose last part was right. */
export type Entered<T> = T & { next_part?: undefined }

/** A code has at most three parts of four digits. */
const MAX_DIGITS = 12

/**
 * Enters the parts of a code one after another, until the service accepts the code.
 * @param code one part, or several parts in one text, such as "4921, then 0377"
 * @param enter sends one part to the service
 */
export async function enterCode<T>(code: string, enter: (part: string) => Promise<T>): Promise<Entered<T> | NextPart> {
  const parts = splitCode(code)
  for (;;) {
    try {
      return (await enter(parts.shift()!)) as Entered<T>
    } catch (error) {
      if (!(error instanceof CourtsideError) || error.code !== 'otp_continue') throw error
      if (parts.length === 0) return { next_part: true, message: error.message }
    }
  }
}

/** Returns the parts of a code. A text that cannot be a code stays as it is, so that the service refuses it. */
function splitCode(code: string): string[] {
  // NFKC turns the full-width digits of East Asian keyboards into ASCII digits.
  const digits = code.normalize('NFKC').replace(/\D/g, '')
  const isCode = digits.length > 0 && digits.length <= MAX_DIGITS && digits.length % 4 === 0
  return isCode ? digits.match(/.{4}/g)! : [code]
}

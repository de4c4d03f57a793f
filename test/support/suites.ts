import { existsSync, readFileSync } from 'node:fs'

// The test data of other projects is in shared/suites/ beside this repository, or in the folder that SUITES_DIR names.
const folder = new URL(
  process.env.SUITES_DIR ? `file://${process.env.SUITES_DIR}/` : '../../../shared/suites/',
  import.meta.url,
)

/** The option `skip` of `describe`: false, or the reason to skip the suite. */
export const skip = existsSync(folder) ? false : 'the test data is missing (set SUITES_DIR to its folder)'

/** Reads a file of the test data. Call this function only in a suite that has the option `skip`. */
export function readSuite<T>(name: string): T {
  return JSON.parse(readFileSync(new URL(name, folder), 'utf8'))
}

/** Returns the message for a failed assertion about an item of the test data. */
export function describeAnswer(item: string, { status, text }: { status: number; text: string }): string {
  return `${JSON.stringify(item)}: ${status} ${text}`
}

import { existsSync, readFileSync } from 'node:fs'

// The data of other projects is in a folder beside this one; SUITES_DIR names another folder.
const folder = new URL(
  process.env.SUITES_DIR ? `file://${process.env.SUITES_DIR}/` : '../../../shared/suites/',
  import.meta.url,
)

/** For the options of `describe`: false, or the reason why the suite is skipped. */
export const skip = existsSync(folder) ? false : 'the data of other projects is missing; SUITES_DIR names its folder'

/** Reads a file of the data. To be called within a suite that `skip` guards. */
export function readSuite<T>(name: string): T {
  return JSON.parse(readFileSync(new URL(name, folder), 'utf8'))
}

/** Returns the message of a failed assertion about an item of the data. */
export function describeAnswer(item: string, { status, text }: { status: number; text: string }): string {
  return `${JSON.stringify(item)}: ${status} ${text}`
}

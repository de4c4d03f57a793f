import { existsSync, readFileSync } from 'node:fs'

// Outside data lies beside the project and is read in place; SUITES_DIR names another folder.
const folder = new URL(
  process.env.SUITES_DIR ? `file://${process.env.SUITES_DIR}/` : '../../../shared/suites/',
  import.meta.url,
)

/** For the options of `describe`: false, or why the suite is skipped. */
export const skip = existsSync(folder) ? false : 'the outside data is not here; SUITES_DIR names its folder'

/** A file of the outside data. To be called within a suite, where it is known to be there. */
export function readSuite<T>(name: string): T {
  return JSON.parse(readFileSync(new URL(name, folder), 'utf8'))
}

/** What an assertion about an item of the data says when it fails. */
export function told(item: string, { status, text }: { status: number; text: string }): string {
  return `${JSON.stringify(item)}: ${status} ${text}`
}

import { mock } from 'node:test'
import type { Context } from '../../src/context.ts'

/**
 * Counts the statements that an app runs during `work`, except hints, statements in transactions and statements of the
 * intake.
 */
export async function countStatements(
  { sql, readSql }: Pick<Context, 'sql' | 'readSql'>,
  work: () => Promise<unknown>,
): Promise<number> {
  const mocks = [sql, readSql].map(({ pipeline }) => mock.method(pipeline, 'query').mock)
  try {
    await work()
    return mocks.flatMap(({ calls }) => calls).filter(call => !isHint(call.arguments[0]!.text)).length
  } finally {
    for (const each of mocks) each.restore()
  }
}

/** Returns whether a statement sends hints. */
export function isHint(text: string): boolean {
  return /^\s*select set_config\('synchronous_commit'/.test(text)
}

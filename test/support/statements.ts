import { mock } from 'node:test'
import type { Context } from '../../src/context.ts'

/**
 * Counts the statements that an app runs during `work`, except statements in transactions and statements of the intake.
 */
export async function countStatements(
  { sql, readSql }: Pick<Context, 'sql' | 'readSql'>,
  work: () => Promise<unknown>,
): Promise<number> {
  const mocks = [sql, readSql].map(({ pipeline }) => mock.method(pipeline, 'query').mock)
  try {
    await work()
    return mocks.reduce((sum, each) => sum + each.callCount(), 0)
  } finally {
    for (const each of mocks) each.restore()
  }
}

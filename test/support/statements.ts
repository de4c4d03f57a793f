import { mock } from 'node:test'
import type { Context } from '../../src/context.ts'
import { Pipeline } from '../../src/db/pipeline.ts'

/** How many statements `work` makes an app run for its requests: on its pool, and reads, of which all in this process are counted. */
export async function countStatements({ sql }: Pick<Context, 'sql'>, work: () => Promise<unknown>): Promise<number> {
  let acquired = 0
  const add = () => {
    acquired += 1
  }
  const { mock: reads } = mock.method(Pipeline.prototype, 'query')
  sql.pool.on('acquire', add)
  try {
    await work()
    return acquired + reads.callCount()
  } finally {
    sql.pool.off('acquire', add)
    reads.restore()
  }
}

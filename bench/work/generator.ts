import assert from 'node:assert/strict'
import { type Bench, compare } from '../measure.ts'
import { describePauses } from '../pauses.ts'
import { startProgram } from '../programs.ts'
import { formatNumber, type Part } from '../report.ts'
import { get } from '../requests.ts'

/**
 * Measures the pauses of the machine, and the limit of the load generator with a server that always gives the same
 * answer.
 */
export async function generator(bench: Bench): Promise<Part> {
  const pauses = bench.smoke ? [] : [await describePauses()]
  const trivial = await startProgram('trivial', '')
  try {
    const request = get('/api/v1/notifications/unread-count', 'x'.repeat(300))
    const check = (body: unknown) => assert.deepEqual(body, { unread_count: 12 })
    const figures = await compare(
      bench,
      [{ name: 'trivial', programs: [trivial], next: () => request, check }],
      'trivial',
    )
    const [limit] = figures
    const note = [
      `The load generator gets ${formatNumber(limit!.perSecond)} answers per second`,
      'from a server that always gives the same answer.',
      `At half of that rate, p99 is ${formatNumber(limit!.p99)} ms.`,
      'If the generator was busy for 85 % of the time or more, it limits the figures of that row.',
    ].join(' ')
    return { rows: [], comparisons: [{ work: 'constant answer', figures }], notes: [note, ...pauses] }
  } finally {
    await trivial.stop()
  }
}

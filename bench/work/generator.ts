import assert from 'node:assert/strict'
import { type Bench, compare } from '../measure.ts'
import { startProgram } from '../programs.ts'
import { formatNumber, type Part } from '../report.ts'
import { get } from '../requests.ts'

/** What the load generator can do at most: the same requests to a server that does nothing. */
export async function generator(bench: Bench): Promise<Part> {
  const trivial = await startProgram('trivial', '')
  try {
    const request = get('/api/v1/notifications/unread-count', 'x'.repeat(300))
    const check = (body: unknown) => assert.deepEqual(body, { unread_count: 12 })
    const of = await compare(bench, [{ name: 'trivial', programs: [trivial], next: () => request, check }], 'trivial')
    const [most] = of
    const note = `The load generator gets ${formatNumber(most!.perSecond)} answers a second out of a server that does nothing; p99 at half of that is ${formatNumber(most!.p99)} ms. A row is bounded by the generator when that was busy for 85 % or more.`
    return { rows: [], figures: [{ work: 'nothing at all', of }], notes: [note] }
  } finally {
    await trivial.stop()
  }
}

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'

const MEMORY = new URL('../src/memory.ts', import.meta.url).href

/** Makes garbage by the gigabyte, some of which outlives a collection. @returns the young generation's size at its largest, bytes */
async function largest(each: string): Promise<number> {
  const program = `
    import v8 from 'node:v8'
    import { boundYoungGeneration } from '${MEMORY}'
    const young = () => v8.getHeapSpaceStatistics().find(space => space.space_name === 'new_space').space_size
    let [kept, largest] = [[], 0]
    for (let round = 0; round < 2000; round += 1) {
      for (let count = 0; count < 5000; count += 1) kept.push({ round, count: [count] })
      if (kept.length > 60000) kept = []
      ${each}
      largest = Math.max(largest, young())
    }
    console.log(largest)`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program])
  return Number(stdout)
}

test('the young generation stays at 16 MB', async () => {
  const [bound, free] = [await largest('boundYoungGeneration()'), await largest('')]
  // V8 counts in pages, whose size is its own affair.
  assert.ok(bound < 18e6, `bound: ${bound}`)
  assert.ok(free > 36e6, `by itself it was ${free}`)
})

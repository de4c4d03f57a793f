import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import { formatNumber } from './report.ts'

const SECONDS = 10
/** A shorter time between two readings of the clock can be the work of the loop itself. */
const MIN_PAUSE_MS = 2

const READ_CLOCK = `
  const { parentPort } = require('node:worker_threads')
  const end = performance.now() + ${SECONDS * 1_000}
  const pauses = []
  for (let last = performance.now(), now = last; last < end; last = now) {
    now = performance.now()
    if (now - last > ${MIN_PAUSE_MS}) pauses.push(now - last)
  }
  parentPort.postMessage(pauses)`

/**
 * Measures for how long the machine stops programs. A virtual machine shares its cores with others, so the host can
 * stop any program for some time. To measure this, a loop on each core reads the clock. No other program may run
 * meanwhile.
 * @returns a sentence about the pauses
 */
export async function describePauses(): Promise<string> {
  const loops = Array.from({ length: availableParallelism() }, async () => {
    const worker = new Worker(READ_CLOCK, { eval: true })
    return new Promise<number[]>((resolve, reject) => {
      worker.once('message', resolve).once('error', reject)
    })
  })
  const pauses = (await Promise.all(loops)).flat()
  const share = pauses.reduce((sum, ms) => sum + ms, 0) / (SECONDS * 1_000 * loops.length)
  return [
    `Pauses of the machine: a loop on each core read the clock for ${SECONDS} s while nothing else ran.`,
    `The loops stood still for ${formatNumber(share * 100)} % of the time, and for at most`,
    `${formatNumber(Math.max(0, ...pauses))} ms. Every latency above includes such pauses.`,
  ].join(' ')
}

import v8 from 'node:v8'

// Of its two halves together. Beyond that, bigger made requests dearer: what is written leaves the processor's cache.
const YOUNG_BYTES = 16 * 1024 * 1024
const LOOK_MS = 200

/**
 * Keeps the garbage that lies about small. By itself V8 lets the young generation grow to 128 MB under load, and the old one to
 * about twice what lives in it. Flags for that can be given to `node` as well; here they hold however the service is started.
 */
export function boundMemory(): void {
  // The next collection comes when half as much again has been added.
  v8.setFlagsFromString('--heap-growing-percent=50')
  boundYoungGeneration()
  setInterval(boundYoungGeneration, LOOK_MS).unref()
}

/**
 * Lets the young generation grow, by doubling, until it has its size. How far it may grow is settled before any of our code
 * runs, but V8 asks each time by how much. Looked at again and again, since it is shrunk when a process rests.
 */
export function boundYoungGeneration(): void {
  const young = v8.getHeapSpaceStatistics().find(space => space.space_name === 'new_space')
  const factor = young && young.space_size >= YOUNG_BYTES ? 1 : 2
  v8.setFlagsFromString(`--semi-space-growth-factor=${factor}`)
}

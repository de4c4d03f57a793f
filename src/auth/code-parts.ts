import type { Keys } from '../keys.ts'

export const MAX_PARTS = 3

/** Returns the id to which the hash of a part is bound. So the hash of one part never matches another part. */
export function buildPartId(codeId: string, index: number): string {
  return index === 0 ? codeId : `${codeId}/${index}`
}

/**
 * The result of a comparison. `right`: the last part is right. `part`: another part is due, and `entered` is the number
 * of parts that have been entered.
 */
export type Comparison = { result: 'wrong' | 'right' } | { result: 'part'; entered: number }

// If there is no code, the guess is compared with this hash, so the comparison takes the same time.
const NO_MAC = Buffer.alloc(32)

/**
 * Compares a typed code with the parts of a code: the part that is due, and the parts that were entered before. The
 * duration does not reveal the result, and does not depend on whether there is a code.
 * @param code the id, the hashes of the parts, and the number of parts that the caller's network has entered
 */
export function comparePart(
  keys: Keys,
  code: { id: string; macs: readonly Buffer[]; entered: number } | undefined,
  typed: string,
): Comparison {
  if (!code) {
    keys.matches(NO_MAC, '', typed)
    return { result: 'wrong' }
  }
  const matches = code.macs
    .slice(0, code.entered + 1)
    .map((mac, index) => keys.matches(mac, buildPartId(code.id, index), typed))
  if (!matches.includes(true)) return { result: 'wrong' }
  if (!matches[code.entered]) return { result: 'part', entered: code.entered }
  const entered = code.entered + 1
  return entered === code.macs.length ? { result: 'right' } : { result: 'part', entered }
}

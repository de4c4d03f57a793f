import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'

/** English and French words, words of programs, and frequent passwords, in lower case. Blanks separate them. */
const FILE = new URL('./common-words.txt', import.meta.url)

/** Random texts contain shorter words by chance. */
const MIN_LENGTH = 4
const MAX_LENGTH = 16

/** The usual digest of each length in bytes. */
const DIGESTS: Record<number, string> = {
  16: 'md5',
  20: 'sha1',
  28: 'sha224',
  32: 'sha256',
  48: 'sha384',
  64: 'sha512',
}

let words: Set<string> | undefined
const digests = new Map<string, Set<string>>()

/** Returns the length of the longest common word at a position of a text in lower case, or 0. */
export function findWordAt(text: string, index: number): number {
  let length = Math.min(MAX_LENGTH, text.length - index)
  while (length >= MIN_LENGTH && !readWords().has(text.slice(index, index + length))) length -= 1
  return length >= MIN_LENGTH ? length : 0
}

/**
 * Returns whether a secret is the digest of a common word or of the empty text, in hexadecimal or base64. Public tables
 * contain such digests.
 */
export function isDigestOfWord(secret: string): boolean {
  const digits = secret.replaceAll('-', '')
  const bytes = /^[0-9a-f]+$/i.test(digits) ? Buffer.from(digits, 'hex') : Buffer.from(secret, 'base64')
  const algorithm = DIGESTS[bytes.length]
  return algorithm !== undefined && computeDigests(algorithm).has(bytes.toString('base64'))
}

/** Computes the digests of the empty text, and of each word as people type it. The command `echo` adds a line break. */
function computeDigests(algorithm: string): Set<string> {
  const known = digests.get(algorithm)
  if (known) return known
  const texts = ['', ...readWords()]
    .flatMap(word => [word, word.slice(0, 1).toUpperCase() + word.slice(1)])
    .flatMap(text => [text, `${text}\n`])
  const computed = new Set(texts.map(text => hash(algorithm, text, 'base64')))
  digests.set(algorithm, computed)
  return computed
}

/** Reads the list once. A process reads it only if the operator has set a secret. */
function readWords(): Set<string> {
  words ??= new Set(readFileSync(FILE, 'utf8').trim().split(/\s+/))
  return words
}

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { findWordAt, isDigestOfWord } from './common-words.ts'

// Each word makes a text readable, and a random secret contains none of them by chance. `WORDS` match in lower case, in
// upper case and with a capital first letter. Eight letters are so unlikely in a random text that `LONG_WORDS` match in
// any mixture of cases.
const WORDS =
  'secret change replace example sample default string insert unsafe secreto exemple geheim jwt_key hmac-key'
const LONG_WORDS = [
  ...'password passwort passphrase placeholder characters changeme development production openssl insecure'.split(' '),
  ...'jwtsecret secretkey supersafe motdepasse remplacez courtside generate dontcare qwertyuiop'.split(' '),
]

/** The digits and signs that people write instead of a letter, as in "S3cr3t" and "p@$$w0rd". */
const LOOKALIKES: Record<string, string> = { a: '4@', e: '3', i: '1', o: '0', s: '5$', t: '7' }

const WORD_PATTERNS = [
  ...WORDS.split(' ')
    .flatMap(word => [word, word.toUpperCase(), word[0]!.toUpperCase() + word.slice(1)])
    .map(word => new RegExp(spell(word))),
  new RegExp(LONG_WORDS.map(spell).join('|'), 'i'),
  /your.?(?:256|secret|key|own|hmac|jwt)/i,
]

// Sequences that people type instead of random characters: digits, the alphabet, and the rows and columns of keyboards.
const SEQUENCES = [
  '01234567890123456789',
  'abcdefghijklmnopqrstuvwxyz',
  'qwertyuiop',
  'azertyuiop',
  'asdfghjkl',
  'zxcvbnm',
  '1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik',
  '00112233445566778899aabbccddeeff',
]
const MIN_RUN = 4

// Random tokens of 16 characters contain up to 9 characters of words by chance.
const MIN_PREDICTABLE = 19

// Four or more words. A random text of this length mixes upper case, lower case and digits within a word.
const WORDS_ONLY = /^(?:[a-z]+|[A-Z]+|[A-Z][a-z]+)(?:[-_.](?:[a-z]+|[A-Z]+|[A-Z][a-z]+)){3,}$/

// Only uuids of the versions 4 and 7 are random.
const UUID_NOT_RANDOM = /^[0-9a-f]{8}-[0-9a-f]{4}-(?![47])[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

// The search for repetitions takes quadratic time. A secret with a random beginning of this length is long enough.
const MAX_EXAMINED = 512

/** The SHA-256 digests of published secrets, cut to 8 bytes. A line of the file is one digest in base64url. */
const PUBLISHED = new URL('./published-secrets.txt', import.meta.url)
const DIGEST_BYTES = 8

let published: Set<string> | undefined

/**
 * Returns why a secret is easy to guess. Such a secret is published, or a person wrote it, for example as a
 * placeholder. Returns undefined for a secret that may be random. A secret of random bytes in hexadecimal or base64
 * passes; the chance of a refusal by accident is below one in a million.
 */
export function findWeakness(secret: string): string | undefined {
  const weakness = findPattern(secret)
  if (weakness) return weakness
  const decoded = decodeText(secret)
  // A short random token can encode a text with a blank by chance, so blanks alone do not count here.
  if (decoded !== undefined && (findPattern(decoded.replace(/\s/g, '-')) || isLongText(decoded)))
    return 'is an encoded text, not random'
  if (isDigestOfWord(secret)) return 'is the digest of a common word'
  return isPublished(secret) ? 'is published on the internet' : undefined
}

function findPattern(secret: string): string | undefined {
  const text = secret.slice(0, MAX_EXAMINED)
  if (/\s|\p{Cc}/u.test(text)) return 'contains blanks'
  if (/<[^>]*>|\$\{|\{\{/.test(text)) return 'is a placeholder in brackets'
  if (WORDS_ONLY.test(text)) return 'consists of words or sequences, not random'
  if (isRepetition(text)) return 'repeats itself'
  if (UUID_NOT_RANDOM.test(text)) return 'is a uuid that is not random'
  if (countPredictable(text.toLowerCase()) > Math.max(text.length, MIN_PREDICTABLE) / 2)
    return 'consists of words or sequences, not random'
  if (WORD_PATTERNS.some(pattern => pattern.test(text))) return 'is a placeholder'
  return undefined
}

/** Returns the pattern of a word in which lookalikes may replace letters. */
function spell(word: string): string {
  return [...word].map(letter => `[${letter}${LOOKALIKES[letter.toLowerCase()] ?? ''}]`).join('')
}

/** Returns whether the text has few different characters, or repeats a part of it with few changes. */
function isRepetition(text: string): boolean {
  if (new Set(text).size < Math.min(8, text.length / 4)) return true
  const half = Math.floor(text.length / 2)
  return Array.from({ length: half }, (_, index) => index + 1).some(period => {
    const compared = text.length - period
    let equal = 0
    for (let index = 0; index < compared; index += 1) if (text[index] === text[index + period]) equal += 1
    // A short text must repeat exactly, because a random text can agree with itself in a few places by chance.
    return equal >= (compared < 16 ? compared : compared * 0.75)
  })
}

/** Counts the characters in common words, in sequences and in runs of equal characters. */
function countPredictable(text: string): number {
  let count = 0
  for (let index = 0; index < text.length; ) {
    const length = Math.max(findWordAt(text, index), findRunAt(text, index))
    count += length
    index += Math.max(1, length)
  }
  return count
}

/** Returns the length of the run that begins at a position, or 0. A run has at least four characters. */
function findRunAt(text: string, index: number): number {
  let length = 1
  while (index + length < text.length && isRun(text.slice(index, index + length + 1))) length += 1
  return length >= MIN_RUN ? length : 0
}

function isRun(part: string): boolean {
  if (new Set(part).size === 1) return true
  const reversed = [...part].reverse().join('')
  return SEQUENCES.some(sequence => sequence.includes(part) || sequence.includes(reversed))
}

/** Returns the text that a secret encodes in hexadecimal or base64, or undefined if it encodes no printable text. */
function decodeText(secret: string): string | undefined {
  const hex = /^(?:0x)?((?:[0-9a-f]{2})+)$/i.exec(secret)?.[1]
  const candidates = [...(hex ? [Buffer.from(hex, 'hex')] : []), Buffer.from(secret, 'base64')]
  return candidates.map(bytes => bytes.toString('latin1')).find(text => text.length > 8 && /^[\t\n\r -~]*$/.test(text))
}

/**
 * Returns whether a decoded text is so long (24 bytes or more) that random bytes would hardly all be printable. Returns
 * false for a text that looks like base64 or hexadecimal, because it may be random bytes that were encoded twice.
 */
function isLongText(decoded: string): boolean {
  return decoded.length >= 24 && !/^[\w+/=-]+$/.test(decoded)
}

/** Returns whether a secret is in the list of published secrets. The list contains uuids without their hyphens. */
function isPublished(secret: string): boolean {
  // A process reads the file only if the operator has set a secret.
  published ??= new Set(readFileSync(PUBLISHED, 'utf8').split('\n'))
  return published.has(computeDigest(secret)) || published.has(computeDigest(secret.replaceAll('-', '')))
}

/** Returns the digest of a secret in the list of published secrets. Upper and lower case count as equal. */
function computeDigest(secret: string): string {
  return createHash('sha256').update(secret.toLowerCase()).digest().subarray(0, DIGEST_BYTES).toString('base64url')
}

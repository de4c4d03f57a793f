import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { constants } from 'node:fs'
import { link, open, rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { prepareDataFolder } from './data-folder.ts'
import { findWeakness } from './weak-secrets.ts'

/** Returns a new secret: 32 random bytes as base64url. The settings accept every such secret. */
export function newSecret(): string {
  for (;;) {
    const secret = randomBytes(32).toString('base64url')
    if (findWeakness(secret) === undefined) return secret
  }
}

export function digestKey(key: string): Buffer {
  return createHash('sha256').update(key).digest()
}

/**
 * Returns whether a sent key is one of the keys with these digests. The function compares the digest of the sent key
 * with every digest, even after a match. All digests have the same length, and each comparison takes constant time. So
 * the duration reveals nothing about the keys.
 */
export function matchesAny(sent: string, digests: readonly Buffer[]): boolean {
  const sentDigest = digestKey(sent)
  return digests.map(digest => timingSafeEqual(digest, sentDigest)).some(isEqual => isEqual)
}

export type StoredSecret = { secret: string; path: string }

/**
 * Returns the secret from the file `<dataDir>/<name>`. The first call creates the file with mode 0600. If two processes
 * start at the same time, both get the same secret.
 * @param warn is called with a sentence if other users could read the file
 * @throws an error that names the file, if it contains no secret or cannot be read
 */
export async function loadOrCreateSecret(
  dataDir: string,
  name: string,
  warn: (sentence: string) => void,
): Promise<StoredSecret> {
  const folder = await prepareDataFolder(dataDir)
  // The file exists at every start except the first. So the first attempt writes nothing.
  try {
    return await readSecret(folder, name, warn)
  } catch (error) {
    if (((error as Error).cause as NodeJS.ErrnoException | undefined)?.code !== 'ENOENT') throw error
  }
  await createSecret(join(folder, name))
  return readSecret(folder, name, warn)
}

/** Creates a file with a new secret, unless another process creates it at the same time. */
async function createSecret(path: string): Promise<void> {
  // Processes in two containers may have the same process id, so the name contains a random part.
  const draft = `${path}.${randomBytes(9).toString('base64url')}`
  try {
    await writeFile(draft, `${newSecret()}\n`, { mode: 0o600, flush: true, flag: 'wx' })
    // The hard link creates the file together with its content. If the file exists, `link` fails. So only one of two
    // concurrent processes creates the file, and both processes read the same secret.
    await link(draft, path).catch(error => {
      if (error.code !== 'EEXIST') throw error
    })
  } finally {
    await rm(draft, { force: true })
  }
}

/**
 * Returns the secret from the file `<dataDir>/<name>`, without creating it.
 * @throws an error that names the file, if it is missing, contains no secret or cannot be read
 */
export async function readSecret(
  dataDir: string,
  name: string,
  warn: (sentence: string) => void,
): Promise<StoredSecret> {
  const path = resolve(dataDir, name)
  const { text, mode, isClosed } = await readPrivately(path).catch(cause => {
    throw new Error(`${path} ${explainReadError(cause)}`, { cause })
  })
  const secret = text.trim()
  if (secret.length < 32)
    throw new Error(`${path} contains no secret. Delete the file. The next startup creates a new secret.`)
  const weakness = findWeakness(secret)
  if (weakness) throw new Error(`${path} ${weakness}. Delete the file. The next startup creates a new secret.`)
  if ((mode & 0o077) !== 0) warn(describeOpenFile(path, mode, isClosed))
  return { secret, path }
}

function explainReadError({ code, message }: NodeJS.ErrnoException): string {
  if (code === 'ENOENT') return 'does not exist. The service creates it when it starts.'
  if (code === 'EISDIR')
    return 'is a folder, but it must be a file. Delete the folder. The next startup creates the file.'
  if (code === 'ELOOP') return 'is a symbolic link, but it must be a file. Put the file in the place of the link.'
  if (code === 'EACCES') return `cannot be read by the user id ${process.geteuid?.()}. Make this user its owner.`
  return `cannot be read: ${message}`
}

/**
 * Reads a file, and gives it the mode 0600 if other users could read it. Does not follow a symbolic link at the end of
 * the path, because the mode of another file would change.
 */
async function readPrivately(path: string) {
  const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    const mode = (await handle.stat()).mode & 0o777
    const text = await handle.readFile('utf8')
    const isClosed = (mode & 0o077) === 0 || (await handle.chmod(0o600).then(...YES_OR_NO))
    return { text, mode, isClosed }
  } finally {
    await handle.close()
  }
}

const YES_OR_NO = [() => true, () => false] as const

/** Returns a warning about a file that other users could read, because they may know the secret. */
function describeOpenFile(path: string, mode: number, isClosed: boolean): string {
  return (
    `Other users could read ${path}, because its mode was ${mode.toString(8)}. ` +
    (isClosed ? 'Its mode is 600 now. ' : 'Change its mode to 600. ') +
    'If other users of the machine are not trusted, delete the file, so that the next startup creates a new secret.'
  )
}

import { randomBytes } from 'node:crypto'
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { findWeakness } from './weak-secrets.ts'

/** Returns a new secret: 32 random bytes as base64url. The settings accept it, whatever the random bytes are. */
export function newSecret(): string {
  for (;;) {
    const secret = randomBytes(32).toString('base64url')
    if (findWeakness(secret) === undefined) return secret
  }
}

/**
 * Returns the secret from the file `<dataDir>/<name>`. The first call creates the file with mode 0600. If two processes
 * start at the same time, both get the same secret.
 */
export async function loadOrCreateSecret(dataDir: string, name: string): Promise<{ secret: string; path: string }> {
  const path = join(dataDir, name)
  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  const draft = `${path}.${process.pid}`
  await writeFile(draft, `${newSecret()}\n`, { mode: 0o600, flush: true })
  // The hard link creates the file together with its content. If the file exists, `link` fails. So only one of two
  // concurrent processes creates the file, and both processes read the same secret.
  await link(draft, path).catch(error => {
    if (error.code !== 'EEXIST') throw error
  })
  await rm(draft)
  const secret = (await readFile(path, 'utf8')).trim()
  if (secret.length < 32)
    throw new Error(`${path} contains no secret. Delete the file. The next startup creates a new secret.`)
  const weakness = findWeakness(secret)
  if (weakness) throw new Error(`${path} ${weakness}. Delete the file. The next startup creates a new secret.`)
  return { secret, path }
}

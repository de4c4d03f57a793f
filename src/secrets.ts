import { randomBytes } from 'node:crypto'
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** Returns 32 random bytes as base64url. */
export function newSecret(): string {
  return randomBytes(32).toString('base64url')
}

/**
 * Returns the secret in `<dataDir>/<name>`, which the first call creates with mode 0600. Two processes that start at
 * once get the same secret.
 */
export async function loadOrCreateSecret(dataDir: string, name: string): Promise<{ secret: string; path: string }> {
  const path = join(dataDir, name)
  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  const draft = `${path}.${process.pid}`
  await writeFile(draft, `${newSecret()}\n`, { mode: 0o600, flush: true })
  // A hard link appears with its whole content, and fails if the file exists. So one of two processes wins.
  await link(draft, path).catch(error => {
    if (error.code !== 'EEXIST') throw error
  })
  await rm(draft)
  const secret = (await readFile(path, 'utf8')).trim()
  if (secret.length < 32)
    throw new Error(`${path} contains no secret. Delete the file; the next start creates a new one.`)
  return { secret, path }
}

import { randomBytes } from 'node:crypto'
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** 32 random bytes, base64url. */
export function newSecret(): string {
  return randomBytes(32).toString('base64url')
}

/** The secret kept in `<dataDir>/<name>` with mode 0600; made at the first call. Two processes that start at once get the same. */
export async function keptSecret(dataDir: string, name: string): Promise<{ secret: string; path: string }> {
  const path = join(dataDir, name)
  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  const draft = `${path}.${process.pid}`
  await writeFile(draft, `${newSecret()}\n`, { mode: 0o600, flush: true })
  // A link appears whole or not at all, and fails where there is a file already: of two processes one wins.
  await link(draft, path).catch(error => {
    if (error.code !== 'EEXIST') throw error
  })
  await rm(draft)
  const secret = (await readFile(path, 'utf8')).trim()
  if (secret.length < 32) throw new Error(`${path} holds no secret; delete it to have a new one made.`)
  return { secret, path }
}

import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'

// With these flags, the process follows no symbolic link and does not wait for a named pipe.
const FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

/** All files that this process reads in a cluster are shorter. */
const MAX_BYTES = 65_536

/**
 * Reads the beginning of a small file in a cluster. The user who runs PostgreSQL may have put a link in the place of
 * the file. Root would then read a file that this user may not read, and an error message would show it.
 * @throws an error with a `code`: ELOOP for a link, EISDIR for a folder, EINVAL for a pipe or a device
 */
export async function readClusterFile(cluster: string, name: string): Promise<string> {
  const handle = await open(join(cluster, name), FLAGS)
  try {
    const stats = await handle.stat()
    if (!stats.isFile() && !stats.isDirectory()) throw Object.assign(new Error('it is no file'), { code: 'EINVAL' })
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(MAX_BYTES), 0, MAX_BYTES, 0)
    return buffer.toString('utf8', 0, bytesRead)
  } finally {
    await handle.close()
  }
}

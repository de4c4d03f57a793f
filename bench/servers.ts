import { execFile } from 'node:child_process'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type Postgres, startPostgres } from './postgres.ts'

/** A server on which the bench measures writes. */
export type Server = { name: string; postgres: Postgres }

export type Servers = {
  /**
   * A server on the disk of this machine, a server whose disk flushes take 1.5 ms, and such a server with a synchronous
   * standby whose disk flushes also take 1.5 ms.
   */
  all: Server[]
  /** Why the servers with slow disk flushes are missing. Undefined if all servers run. */
  missing: string | undefined
  stop(): Promise<void>
}

/** Starts the servers with slow disk flushes, if a C compiler is found. */
export async function startServers(fast: Postgres): Promise<Servers> {
  const own = { name: 'the disk as it is', postgres: fast }
  const folder = await mkdtemp(join(tmpdir(), 'courtside-bench-flush-'))
  const library = await compileSlowFlush(folder)
  if (library === undefined) {
    await rm(folder, { recursive: true })
    return { all: [own], missing: 'no C compiler was found', stop: async () => {} }
  }
  const [slow, pair] = await Promise.all([
    startPostgres({ preload: library }),
    startPostgres({ preload: library, hasStandby: true }),
  ])
  return {
    all: [
      own,
      { name: 'a flush of 1.5 ms', postgres: slow },
      { name: 'a flush of 1.5 ms and a synchronous standby', postgres: pair },
    ],
    missing: undefined,
    async stop() {
      await Promise.all([slow.stop(), pair.stop()])
      await rm(folder, { recursive: true })
    },
  }
}

/** @returns the path of the library, or undefined if there is no C compiler */
async function compileSlowFlush(folder: string): Promise<string | undefined> {
  // Another user than root may run PostgreSQL.
  await chmod(folder, 0o755)
  const library = join(folder, 'slow-flush.so')
  const source = new URL('./slow-flush.c', import.meta.url).pathname
  try {
    await promisify(execFile)('cc', ['-shared', '-fPIC', '-O2', '-o', library, source, '-ldl'])
    return library
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

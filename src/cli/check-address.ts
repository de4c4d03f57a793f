import { once } from 'node:events'
import { createServer } from 'node:net'
import type { Config } from '../config.ts'
import { explainListenError } from '../http/listen-error.ts'

/**
 * Checks that the service will be able to listen on HOST and PORT, before it starts a database and migrates it.
 * @throws an error that names the setting at fault
 */
export async function requireFreeAddress({ host, port }: Config): Promise<void> {
  const server = createServer().listen({ host, port })
  try {
    await once(server, 'listening')
  } catch (error) {
    throw explainListenError(error as NodeJS.ErrnoException, { host, port })
  }
  server.close()
  await once(server, 'close')
}

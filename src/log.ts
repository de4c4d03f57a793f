import { type Logger, pino } from 'pino'
import type { Config } from './config.ts'

/** JSON lines, or for eyes on a terminal. Requests, headers and bodies are never logged, so nothing needs redacting. */
export async function createLog(level: Config['logLevel']): Promise<Logger> {
  const options = { level, base: undefined }
  if (!process.stdout.isTTY) return pino(options)
  const { default: pretty } = await import('pino-pretty')
  return pino(options, pretty({ colorize: true, ignore: 'reqId' }))
}

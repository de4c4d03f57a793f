import { type Logger, pino } from 'pino'
import pretty from 'pino-pretty'
import type { Config } from './config.ts'

/** JSON lines, or for eyes on a terminal. Requests, headers and bodies are never logged, so nothing needs redacting. */
export function createLog(level: Config['logLevel']): Logger {
  const options = { level, base: undefined }
  return process.stdout.isTTY ? pino(options, pretty({ colorize: true, ignore: 'reqId' })) : pino(options)
}

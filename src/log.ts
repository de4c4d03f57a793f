import { destination, type Logger, type LoggerOptions, pino } from 'pino'
import type { Config } from './config.ts'

/** Returns the options of every log. Requests, headers and bodies are never logged, so nothing needs redaction. */
export function logOptions(level: Config['logLevel']): LoggerOptions {
  return {
    level,
    base: undefined,
    serializers: { err: describeError },
    hooks: {
      // Without a message, pino would log the error's own message, which may quote personal data.
      logMethod(args, method) {
        const [first] = args as unknown[]
        const isError = first instanceof Error || (first as { err?: unknown } | null)?.err instanceof Error
        method.apply(this, (args.length === 1 && isError ? [first, 'failed'] : args) as typeof args)
      },
    },
  }
}

/** Creates the log of a process: JSON lines, or a readable form on a terminal. */
export async function createLog(level: Config['logLevel']): Promise<Logger> {
  const options = logOptions(level)
  // Writes lines in batches, at most 100 ms late, instead of one system call a line. At exit pino flushes the rest.
  if (!process.stdout.isTTY)
    return pino(options, destination({ fd: 1, sync: false, minLength: 12_288, periodicFlush: 100 }))
  const { default: pretty } = await import('pino-pretty')
  return pino(options, pretty({ colorize: true, ignore: 'reqId', singleLine: true }))
}

/** The parts of an error that may be logged. */
export type ErrorSummary = {
  /** The error's class, with its code if it has one. */
  reason: string
  /** The stack trace, at most 8 lines. */
  at: string[]
  /** The four names that PostgreSQL gives with a refusal. */
  table?: string
  column?: string
  constraint?: string
  routine?: string
  cause?: ErrorSummary
}

/**
 * Returns the parts of an error that may be logged: its class, code and stack trace, and names from the schema. The
 * message is left out, because messages quote values, and PostgreSQL adds whole rows in `detail`. Only `MailFailure`
 * has a message that is safe to log.
 */
export function describeError(thrown: unknown, depth = 0): ErrorSummary {
  const { name, code, message, stack, cause } = (thrown ?? {}) as Partial<Error> & { code?: unknown }
  const reason = [name ?? 'not an error', name === 'MailFailure' ? message : code].filter(part => part).join(' ')
  // The stack begins with the message, which may have lines that look like stack lines.
  const lines = (stack ?? '').replace(message ?? '', '').split('\n')
  const at = lines.filter(line => /^ +at /.test(line)).map(line => line.trim())
  const schemaNames = Object.entries(thrown ?? {}).filter(
    ([key, value]) => ['table', 'column', 'constraint', 'routine'].includes(key) && typeof value === 'string',
  )
  return {
    reason,
    at: at.slice(0, 8),
    ...Object.fromEntries(schemaNames),
    ...(cause !== undefined && depth < 3 && { cause: describeError(cause, depth + 1) }),
  }
}

import { destination, type Logger, type LoggerOptions, pino } from 'pino'
import type { Config } from './config.ts'

/** Returns the options for every log. We never log requests, headers or bodies, so the options need no redaction. */
export function logOptions(level: Config['logLevel']): LoggerOptions {
  return {
    level,
    base: undefined,
    serializers: { err: describeError },
    hooks: {
      // If the call has no message, pino would log the error's message, which may contain personal data.
      logMethod(args, method) {
        const [first] = args as unknown[]
        const isError = first instanceof Error || (first as { err?: unknown } | null)?.err instanceof Error
        method.apply(this, (args.length === 1 && isError ? [first, 'failed'] : args) as typeof args)
      },
    },
  }
}

/** Creates the log of a process. It writes JSON lines, or a readable format if stdout is a terminal. */
export async function createLog(level: Config['logLevel']): Promise<Logger> {
  const options = logOptions(level)
  // Lines are written in batches, at most 100 ms late. This saves a system call per line. At exit, pino writes the
  // rest.
  if (!process.stdout.isTTY)
    return pino(options, destination({ fd: 1, sync: false, minLength: 12_288, periodicFlush: 100 }))
  const { default: pretty } = await import('pino-pretty')
  return pino(options, pretty({ colorize: true, ignore: 'reqId', singleLine: true }))
}

/** The parts of an error that may be logged. */
export type ErrorSummary = {
  /** The name of the error's class, followed by its `code` if it has one. */
  reason: string
  /** The first lines of the stack trace, at most 8. */
  at: string[]
  /** PostgreSQL adds these names from the schema and its source to some errors. */
  table?: string
  column?: string
  constraint?: string
  routine?: string
  cause?: ErrorSummary
}

/**
 * Returns the parts of an error that may be logged: its class, code and stack trace, and names from the schema. The
 * message is left out because messages can contain values. PostgreSQL's `detail` is left out because it can contain
 * whole rows. Only the message of a `MailFailure` is safe to log.
 */
export function describeError(thrown: unknown, depth = 0): ErrorSummary {
  const { name, code, message, stack, cause } = (thrown ?? {}) as Partial<Error> & { code?: unknown }
  const reason = [name ?? 'not an error', name === 'MailFailure' ? message : code].filter(part => part).join(' ')
  // The stack trace begins with the message, and lines of the message may look like lines of a stack trace.
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

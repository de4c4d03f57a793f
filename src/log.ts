import { type Logger, type LoggerOptions, pino } from 'pino'
import type { Config } from './config.ts'
import { LogWriter } from './log-writer.ts'

/**
 * Returns the options that every log uses. We never log requests, HTTP headers or bodies, so the options need no
 * redaction.
 */
export function logOptions(level: Config['logLevel']): LoggerOptions {
  return {
    level,
    base: undefined,
    serializers: { err: describeError },
    hooks: {
      // If a caller logs an error without its own message, pino would log the error's message, which may contain
      // personal data. This hook adds the message 'failed' in this case.
      logMethod(args, method) {
        const [first] = args as unknown[]
        const isError = first instanceof Error || (first as { err?: unknown } | null)?.err instanceof Error
        method.apply(this, (args.length === 1 && isError ? [first, 'failed'] : args) as typeof args)
      },
    },
  }
}

/**
 * Creates the log of a process. The log consists of JSON lines. If stdout is a terminal, the log has a readable format
 * instead. A log that cannot be written never blocks the process.
 */
export async function createLog(level: Config['logLevel']): Promise<Logger> {
  const writer = new LogWriter(1, dropped => log.warn({ dropped }, 'log lines were dropped'))
  const log = pino(logOptions(level), process.stdout.isTTY ? await prettyLines(writer) : writer)
  process.on('exit', () => writer.writeRest())
  return log
}

async function prettyLines(writer: LogWriter): Promise<{ write(line: string): void }> {
  const { prettyFactory } = await import('pino-pretty')
  const format = prettyFactory({ colorize: true, ignore: 'reqId', singleLine: true })
  return { write: line => writer.write(format(line)) }
}

/** The parts of an error that may be logged. */
export type ErrorSummary = {
  /** The name of the error's class, followed by the `code` of the error if it has one. */
  reason: string
  /** The first lines of the stack trace, at most 8. */
  at: string[]
  /** PostgreSQL adds these names to some errors. `routine` is a function in the source code of PostgreSQL. */
  table?: string
  column?: string
  constraint?: string
  routine?: string
  cause?: ErrorSummary
}

/**
 * Returns the parts of an error that may be logged: its class, its error code, its stack trace, and names from the
 * schema. The result omits the message, because messages can contain personal data. The result omits `detail`, because
 * in an error from PostgreSQL this field can contain whole rows. As the only exception, the result contains the message
 * of a `MailFailure`, because this message is safe to log.
 */
export function describeError(thrown: unknown, depth = 0): ErrorSummary {
  const { name, code, message, stack, cause } = (thrown ?? {}) as Partial<Error> & { code?: unknown }
  const reason = [name ?? 'not an error', name === 'MailFailure' ? message : code].filter(part => part).join(' ')
  // The stack trace begins with the message. The message is removed first, because a line of the message may look like
  // a line of a stack trace.
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

import { destination, type Logger, type LoggerOptions, pino } from 'pino'
import type { Config } from './config.ts'

/** How the service logs, wherever the lines go. Requests, headers and bodies are never logged, so nothing needs redacting. */
export function logOptions(level: Config['logLevel']): LoggerOptions {
  return {
    level,
    base: undefined,
    serializers: { err: describeError },
    hooks: {
      // Given no words of ours, pino takes those of the error.
      logMethod(args, method) {
        const [first] = args as unknown[]
        const isError = first instanceof Error || (first as { err?: unknown } | null)?.err instanceof Error
        method.apply(this, (args.length === 1 && isError ? [first, 'failed'] : args) as typeof args)
      },
    },
  }
}

/** JSON lines, or for eyes on a terminal. */
export async function createLog(level: Config['logLevel']): Promise<Logger> {
  const options = logOptions(level)
  // Not one system call a line: they go out together, a tenth of a second late at most. At the end pino flushes.
  if (!process.stdout.isTTY)
    return pino(options, destination({ fd: 1, sync: false, minLength: 12_288, periodicFlush: 100 }))
  const { default: pretty } = await import('pino-pretty')
  return pino(options, pretty({ colorize: true, ignore: 'reqId', singleLine: true }))
}

/** What may be told of a failure. */
export type ErrorSummary = {
  /** Its class, with the code if it has one. */
  reason: string
  /** Where it was thrown, and through whom. */
  at: string[]
  /** Of a refusal by the database: names from the schema. */
  table?: string
  column?: string
  constraint?: string
  routine?: string
  cause?: ErrorSummary
}

/**
 * What may be told of a failure: its class and code, and where it was thrown. Its message stays out, but for those that are
 * made to be kept: others quote values, and PostgreSQL adds whole rows in `detail`. Where it was thrown tells the rest.
 */
export function describeError(thrown: unknown, depth = 0): ErrorSummary {
  const { name, code, message, stack, cause } = (thrown ?? {}) as Partial<Error> & { code?: unknown }
  const reason = [name ?? 'not an error', name === 'MailFailure' ? message : code].filter(part => part).join(' ')
  // The message heads the stack, and may have lines that look like the rest of it.
  const lines = (stack ?? '').replace(message ?? '', '').split('\n')
  const at = lines.filter(line => /^ +at /.test(line)).map(line => line.trim())
  const named = Object.entries(thrown ?? {}).filter(
    ([key, value]) => ['table', 'column', 'constraint', 'routine'].includes(key) && typeof value === 'string',
  )
  return {
    reason,
    at: at.slice(0, 8),
    ...Object.fromEntries(named),
    ...(cause !== undefined && depth < 3 && { cause: describeError(cause, depth + 1) }),
  }
}

import { userInfo } from 'node:os'
import { pino } from 'pino'
import { AUDIT_EVENTS } from '../audit.ts'
import { logOptions } from '../log.ts'

/**
 * Runs the part of a command that changes or exports data, and writes a line of the audit trail to stderr. Stdout
 * contains only the result of the command. LOG_LEVEL does not apply, because the line must not depend on the settings
 * of the terminal. If the work fails, it may have changed a part of the data, so the line is written too.
 * @param command the command without its arguments, because they may contain an e-mail address
 * @param userId the account that the command concerns
 */
export async function audited<T>(command: string, work: () => Promise<T>, userId?: number): Promise<T> {
  try {
    const result = await work()
    writeLine(command, 'done', userId)
    return result
  } catch (error) {
    writeLine(command, 'failed', userId)
    throw error
  }
}

function writeLine(command: string, outcome: 'done' | 'failed', userId: number | undefined): void {
  const audit = 'operator_command'
  try {
    const log = pino(logOptions('info'), pino.destination({ dest: 2, sync: true }))
    log[AUDIT_EVENTS[audit]]({ audit, command, outcome, operator: findOperator(), user_id: userId }, 'audit')
  } catch {
    // The operator still gets the result, because the work is done. The exit code shows that the line is missing.
    process.exitCode = 1
  }
}

/** Returns the name of the operator's account on this machine. sudo stores the name of its caller in SUDO_USER. */
function findOperator(): string {
  if (process.env.SUDO_USER) return process.env.SUDO_USER
  try {
    return userInfo().username
  } catch {
    // In a container, the user may have no entry in /etc/passwd.
    return `uid ${process.getuid?.()}`
  }
}

import { createInterface } from 'node:readline/promises'
import { toUser } from '../accounts/schema.ts'
import * as users from '../accounts/users.ts'
import * as codes from '../auth/codes.ts'
import { canonicalEmail } from '../auth/email-address.ts'
import * as sessions from '../auth/sessions.ts'
import { readDatabaseTime } from '../db/clock.ts'
import type { Database } from '../db/sql.ts'
import { eraseUser, exportUser } from '../personal-data.ts'
import { audited } from './audited.ts'
import { withDatabase } from './resolve-database.ts'
import { print, readArguments, UsageError } from './usage.ts'

/** The result of an action, as a value for `--json` and as text. */
type Result = { result: unknown; text: string }
type Action = (sql: Database, email: string, options: { yes?: boolean | undefined }) => Promise<Result>

const ACTIONS: Record<string, { description: string; run: Action }> = {
  show: {
    description: 'Shows an account.',
    run: onAccount(async (_sql, user) => ({
      result: user,
      text: Object.entries(user)
        .map(([name, value]) => `${name.padEnd(12)} ${typeof value === 'object' ? (value?.slug ?? '-') : value}`)
        .join('\n'),
    })),
  },
  'sign-out': {
    description: 'Ends every session of an account. The devices of the account no longer count as known clients.',
    run: onAccount(async (sql, user) => {
      const endAll = async () => sessions.endAll(sql, user.id, await readDatabaseTime(sql))
      const ended = await audited('users sign-out', endAll, user.id)
      return { result: { ended }, text: `${ended} session(s) ended.` }
    }),
  },
  unlock: {
    description:
      'Clears the wrong guesses and the waiting times of an e-mail address, so a code can be requested at once. The ' +
      'address does not need an account.',
    run: async (sql, email) => {
      const account = await users.findByEmail(sql, email)
      const unlock = async () => {
        if ((await codes.unlock(sql, email)) || account) return
        throw new Error(`There is no account with the e-mail ${email}, and no code was requested for it.`)
      }
      await audited('users unlock', unlock, account?.id)
      return { result: { unlocked: true }, text: 'Unlocked.' }
    },
  },
  delete: {
    description: 'Deletes an account and all data about the person. Asks for confirmation, unless --yes is given.',
    run: onAccount(async (sql, user, { yes }) => {
      if (!yes) await confirm(`Delete the account of ${user.email}?`)
      await audited('users delete', () => eraseUser(sql, user.id), user.id)
      return { result: { deleted: true }, text: 'Deleted.' }
    }),
  },
  export: {
    description: 'Prints all data about a person as JSON.',
    run: onAccount(async (sql, user) => {
      const result = await audited('users export', () => exportUser(sql, user.id), user.id)
      return { result, text: JSON.stringify(result, null, 2) }
    }),
  },
}

/** `courtside users show|sign-out|unlock|delete|export EMAIL` */
export async function run([name = '', ...args]: string[]): Promise<void> {
  const action = Object.hasOwn(ACTIONS, name) ? ACTIONS[name] : undefined
  if (!action) {
    const lines = Object.entries(ACTIONS).map(([known, { description }]) => `  ${known.padEnd(9)} ${description}`)
    throw new UsageError(`Usage: npm run courtside -- users ACTION EMAIL [--json]\n\n${lines.join('\n')}`)
  }
  const usage = `users ${name} EMAIL ${name === 'delete' ? '[--yes] ' : ''}[--json]`
  const parsed = readArguments(args, usage, action.description, name === 'delete' ? { yes: { type: 'boolean' } } : {})
  if (!parsed) return
  const email = canonicalEmail(parsed.positionals[0]!)
  if (!email) throw new UsageError(`${parsed.positionals[0]} is not an e-mail address.`)
  const { result, text } = await withDatabase(sql => action.run(sql, email, parsed.values))
  print(result, parsed.values.json, text)
}

type User = ReturnType<typeof toUser>

/**
 * Returns an action that runs `act` on the account of an e-mail address. The action throws if there is no such account.
 */
function onAccount(act: (sql: Database, user: User, options: Parameters<Action>[2]) => Promise<Result>): Action {
  return async (sql, email, options) => {
    const row = await users.findByEmail(sql, email)
    if (!row) throw new Error(`There is no account with the e-mail ${email}.`)
    return act(sql, toUser(row), options)
  }
}

/**
 * Asks the operator for confirmation.
 * @throws if the answer is not "yes"
 * @throws UsageError if there is no terminal
 */
async function confirm(question: string): Promise<void> {
  if (!process.stdin.isTTY)
    throw new UsageError('There is no terminal for the confirmation. Use --yes to skip the confirmation.')
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  const answer = await terminal.question(`${question} Type yes: `)
  terminal.close()
  if (answer.trim() !== 'yes') throw new Error('Nothing was deleted.')
}

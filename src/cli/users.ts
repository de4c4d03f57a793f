import { createInterface } from 'node:readline/promises'
import { toUser } from '../accounts/schema.ts'
import * as users from '../accounts/users.ts'
import * as codes from '../auth/codes.ts'
import { canonicalEmail } from '../auth/email-address.ts'
import * as sessions from '../auth/sessions.ts'
import type { Database } from '../db/sql.ts'
import { eraseUser, exportUser } from '../personal-data.ts'
import { withDatabase } from './resolve-database.ts'
import { print, readArguments, UsageError } from './usage.ts'

type Result = { result: unknown; words: string }
type Act = (sql: Database, email: string, options: { yes?: boolean | undefined }) => Promise<Result>

const ACTIONS: Record<string, { about: string; act: Act }> = {
  show: {
    about: 'Shows an account.',
    act: ofAccount(async (_sql, user) => ({
      result: user,
      words: Object.entries(user)
        .map(([name, value]) => `${name.padEnd(12)} ${typeof value === 'object' ? (value?.slug ?? '-') : value}`)
        .join('\n'),
    })),
  },
  'sign-out': {
    about: 'Ends every session of an account; its devices lose their lanes too.',
    act: ofAccount(async (sql, user) => {
      const ended = await sessions.endAll(sql, user.id, new Date())
      return { result: { ended }, words: `${ended} session(s) ended.` }
    }),
  },
  unlock: {
    about:
      'Forgets wrong guesses and waits of an address, with an account or not yet: a code can be asked for at once.',
    act: async (sql, email) => {
      const isKnown = (await codes.unlock(sql, email)) || (await users.findByEmail(sql, email)) !== undefined
      if (!isKnown) throw new Error(`There is no account of ${email}, and nobody has asked for a code for it.`)
      return { result: { unlocked: true }, words: 'Unlocked.' }
    },
  },
  delete: {
    about: 'Deletes an account and all that is held on the person. Asks first; --yes answers.',
    act: ofAccount(async (sql, user, { yes }) => {
      if (!yes) await confirm(`Delete the account of ${user.email}?`)
      await eraseUser(sql, user.id)
      return { result: { deleted: true }, words: 'Deleted.' }
    }),
  },
  export: {
    about: 'Prints all that is held on a person, as JSON.',
    act: ofAccount(async (sql, user) => {
      const result = await exportUser(sql, user.id)
      return { result, words: JSON.stringify(result, null, 2) }
    }),
  },
}

/** `courtside users show|sign-out|unlock|delete|export EMAIL` */
export async function run([name = '', ...args]: string[]): Promise<void> {
  const action = Object.hasOwn(ACTIONS, name) ? ACTIONS[name] : undefined
  if (!action) {
    const lines = Object.entries(ACTIONS).map(([known, { about }]) => `  ${known.padEnd(9)} ${about}`)
    throw new UsageError(`Usage: npm run courtside -- users ACTION EMAIL [--json]\n\n${lines.join('\n')}`)
  }
  const usage = `users ${name} EMAIL ${name === 'delete' ? '[--yes] ' : ''}[--json]`
  const read = readArguments(args, usage, action.about, name === 'delete' ? { yes: { type: 'boolean' } } : {})
  if (!read) return
  const email = canonicalEmail(read.words[0]!)
  if (!email) throw new UsageError(`${read.words[0]} is not an e-mail address.`)
  const { result, words } = await withDatabase(sql => action.act(sql, email, read.values))
  print(result, read.values.json, words)
}

type User = ReturnType<typeof toUser>

/** An action that needs an account. @throws when the address has none */
function ofAccount(act: (sql: Database, user: User, options: Parameters<Act>[2]) => Promise<Result>): Act {
  return async (sql, email, options) => {
    const row = await users.findByEmail(sql, email)
    if (!row) throw new Error(`There is no account of ${email}.`)
    return act(sql, toUser(row), options)
  }
}

/** @throws unless the person says yes; without a terminal there is nobody to ask */
async function confirm(question: string): Promise<void> {
  if (!process.stdin.isTTY) throw new UsageError('There is no terminal to ask at; --yes deletes without asking.')
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  const answer = await terminal.question(`${question} Type yes: `)
  terminal.close()
  if (answer.trim() !== 'yes') throw new Error('Nothing was deleted.')
}

import { createInterface } from 'node:readline/promises'
import * as codes from '../auth/codes.ts'
import { canonicalEmail } from '../auth/email-address.ts'
import * as sessions from '../auth/sessions.ts'
import type { Database } from '../db/sql.ts'
import { eraseUser, exportUser } from '../personal-data.ts'
import { toUser } from '../users/schema.ts'
import * as users from '../users/users.ts'
import { withDatabase } from './find.ts'
import { print, readArguments, UsageError } from './usage.ts'

type Result = { result: unknown; words: string }
type Action = { about: string; act: (sql: Database, user: ReturnType<typeof toUser>) => Promise<Result> }

const ACTIONS: Record<string, Action> = {
  show: {
    about: 'Shows an account.',
    act: async (_sql, user) => ({
      result: user,
      words: Object.entries(user)
        .map(([name, value]) => `${name.padEnd(12)} ${typeof value === 'object' ? (value?.slug ?? '-') : value}`)
        .join('\n'),
    }),
  },
  'sign-out': {
    about: 'Ends every session of an account; its devices lose their lanes too.',
    act: async (sql, user) => {
      const ended = await sessions.endAll(sql, user.id, new Date())
      return { result: { ended }, words: `${ended} session(s) ended.` }
    },
  },
  unlock: {
    about: 'Forgets wrong guesses and waits of an address, so that a new code can be asked for at once.',
    act: async (sql, user) => {
      await codes.unlock(sql, user.email)
      return { result: { unlocked: true }, words: 'Unlocked.' }
    },
  },
  delete: {
    about: 'Deletes an account and all that is held on the person. Asks first; --yes answers.',
    act: async (sql, user) => {
      await eraseUser(sql, user.id)
      return { result: { deleted: true }, words: 'Deleted.' }
    },
  },
  export: {
    about: 'Prints all that is held on a person, as JSON.',
    act: async (sql, user) => {
      const result = await exportUser(sql, user.id)
      return { result, words: JSON.stringify(result, null, 2) }
    },
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
  const { result, words } = await withDatabase(async sql => {
    const row = await users.findByEmail(sql, email)
    if (!row) throw new Error(`There is no account of ${email}.`)
    if (name === 'delete' && !read.values.yes) await confirm(`Delete the account of ${email}?`)
    return action.act(sql, toUser(row))
  })
  print(result, read.values.json, words)
}

/** @throws unless the person says yes; without a terminal there is nobody to ask */
async function confirm(question: string): Promise<void> {
  if (!process.stdin.isTTY) throw new UsageError('There is no terminal to ask at; --yes deletes without asking.')
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  const answer = await terminal.question(`${question} Type yes: `)
  terminal.close()
  if (answer.trim() !== 'yes') throw new Error('Nothing was deleted.')
}

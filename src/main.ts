import { UsageError } from './cli/usage.ts'
import { ConfigError } from './config.ts'

// The exit codes EX_CONFIG and EX_USAGE from sysexits.h.
const BAD_CONFIG = 78
const BAD_USAGE = 64

/** All commands. `load` loads the file of a command. `main.ts` calls `load` only for the command that it runs. */
const COMMANDS: Record<
  string,
  { description: string; load: () => Promise<{ run: (args: string[]) => Promise<void> }> }
> = {
  serve: { description: 'run the service, as `npm start` does', load: () => import('./cli/serve.ts') },
  levels: { description: 'list the game levels, or replace them from a file', load: () => import('./cli/levels.ts') },
  users: { description: 'show, sign out, unlock, delete or export an account', load: () => import('./cli/users.ts') },
  emit: { description: 'report events from a file to a running node', load: () => import('./cli/emit.ts') },
  prune: { description: 'delete rows that are past their retention', load: () => import('./cli/prune.ts') },
  migrate: { description: 'update the database to the newest schema', load: () => import('./cli/migrate.ts') },
  distribute: {
    description: 'distribute the notifications over the workers of Citus',
    load: () => import('./cli/distribute.ts'),
  },
  secret: { description: 'print a new secret for JWT_SECRET or INTAKE_KEYS', load: () => import('./cli/secret.ts') },
  openapi: { description: 'print the OpenAPI document', load: () => import('./cli/openapi.ts') },
}

const [name = '', ...args] = process.argv.slice(2)
const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined

if (!command) {
  const lines = Object.entries(COMMANDS).map(([key, { description }]) => `  ${key.padEnd(10)} ${description}`)
  const isHelp = ['help', '--help', '-h'].includes(name)
  console[isHelp ? 'log' : 'error'](`Usage: npm run courtside -- COMMAND [--help]\n\n${lines.join('\n')}`)
  process.exit(isHelp ? 0 : BAD_USAGE)
}

try {
  await (await command.load()).run(args)
} catch (error) {
  process.exitCode = exitCode(error)
  const { message, code } = error as NodeJS.ErrnoException
  console.error(process.env.LOG_LEVEL === 'debug' ? error : message || code)
}

function exitCode(error: unknown): number {
  if (error instanceof ConfigError) return BAD_CONFIG
  return error instanceof UsageError ? BAD_USAGE : 1
}

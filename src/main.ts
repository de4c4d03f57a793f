import { UsageError } from './cli/usage.ts'
import { ConfigError } from './config.ts'

// EX_CONFIG and EX_USAGE of sysexits.h.
const BAD_CONFIG = 78
const BAD_USAGE = 64

/** Each command is a file that is loaded only when it is asked for. */
const COMMANDS: Record<string, { about: string; load: () => Promise<{ run: (args: string[]) => Promise<void> }> }> = {
  serve: { about: 'run the service (what `npm start` does)', load: () => import('./cli/serve.ts') },
  levels: { about: 'list the game levels, or import a scale', load: () => import('./cli/levels.ts') },
  users: { about: 'show, sign out, unlock, delete or export an account', load: () => import('./cli/users.ts') },
  emit: { about: 'send events from a file to a running node', load: () => import('./cli/emit.ts') },
  prune: { about: 'delete what is past its retention', load: () => import('./cli/prune.ts') },
  migrate: { about: 'bring the database to the newest schema', load: () => import('./cli/migrate.ts') },
  secret: { about: 'print a fresh secret for JWT_SECRET or INTAKE_KEYS', load: () => import('./cli/secret.ts') },
  openapi: { about: 'print the OpenAPI document', load: () => import('./cli/openapi.ts') },
}

const [name = '', ...args] = process.argv.slice(2)
const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined

if (!command) {
  const lines = Object.entries(COMMANDS).map(([known, { about }]) => `  ${known.padEnd(10)} ${about}`)
  const asked = ['help', '--help', '-h'].includes(name)
  console[asked ? 'log' : 'error'](`Usage: npm run courtside -- COMMAND [--help]\n\n${lines.join('\n')}`)
  process.exit(asked ? 0 : BAD_USAGE)
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

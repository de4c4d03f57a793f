import type { Import } from './graph.ts'

/** A rule that refuses a kind of import. `because` is the reason in the error message "A must not import B: …". */
type Rule = { refuses: (edge: Import) => boolean; because: string }

/**
 * The folders and root files of src/, highest level first. A file may import files of its own level and of all lower
 * levels.
 */
const LEVELS = [
  ['main'],
  ['cli'],
  ['service'],
  ['app', 'channels', 'personal-data', 'retention'],
  ['auth', 'accounts', 'notifications', 'games', 'reach', 'web'],
  ['context'],
  [
    ...['http', 'db', 'embedded', 'mail', 'limits', 'outbox', 'metrics'],
    ...['audit', 'code-settings', 'config', 'errors', 'ip-address', 'keys', 'language'],
    ...['data-folder', 'log', 'log-writer', 'loop', 'loopback', 'secrets', 'setting-parsers', 'settings'],
    ...['time', 'typography'],
    ...['common-words', 'notification-types', 'reach-config', 'reach-settings', 'weak-secrets'],
  ],
]
const FEATURES = LEVELS[4]!

/** Maps each feature to the features that it may import. */
const FEATURE_IMPORTS: Record<string, string[]> = {
  reach: ['auth', 'games', 'notifications', 'accounts'],
  games: ['notifications', 'accounts'],
  auth: ['accounts'],
  notifications: ['accounts'],
}

export const RULES: Rule[] = [
  {
    refuses: ({ from, to }) => isIn('src', from) && isIn('src', to) && !(findLevel(from) >= 0 && findLevel(to) >= 0),
    because: 'both files must have a level in scripts/imports/rules.ts',
  },
  {
    refuses: ({ from, to }) => findLevel(to) >= 0 && findLevel(to) < findLevel(from),
    because:
      'imports go down: main, cli, service, app and the files that join features, the features, context, other files',
  },
  {
    refuses: ({ from, to }) =>
      isFeature(from) &&
      isFeature(to) &&
      findPlace(from) !== findPlace(to) &&
      !FEATURE_IMPORTS[findPlace(from)]?.includes(findPlace(to)),
    because:
      'reach may import auth, games, notifications and accounts; games may import notifications; these may import accounts',
  },
  {
    refuses: ({ from, to, typeOnly }) =>
      isFeature(from) && to === 'src/context.ts' && !(typeOnly && /(routes|guard)\.ts$/.test(from)),
    because:
      'only routes and the guard may import the type of the context; the functions that they call take plain arguments',
  },
  {
    refuses: ({ from, to, typeOnly }) =>
      isFeature(from) && ['mail', 'config', 'setting-parsers', 'settings', 'log'].includes(findPlace(to)) && !typeOnly,
    because: 'a feature receives mailer, settings and log as arguments and may import only their types',
  },
  {
    refuses: ({ from, to }) => isFeature(from) && ['metrics', 'outbox', 'embedded'].includes(findPlace(to)),
    because:
      'a feature receives plain functions as arguments; the app and the service connect them to metrics and the outbox',
  },
  {
    refuses: ({ from, to }) =>
      isIn('src', from) &&
      !isIn('src/mail', from) &&
      from !== 'src/context.ts' &&
      /^src\/mail\/(?!(mailer|mailbox|mailbox-routes)\.ts)/.test(to),
    because: 'only the context chooses an implementation; other files import the port src/mail/mailer.ts',
  },
  {
    refuses: ({ from, to }) =>
      isIn('src', from) && findPlace(to) === 'embedded' && !['embedded', 'cli'].includes(findPlace(from)),
    because: 'a node with DATABASE_URL runs without the embedded server; only a command starts it',
  },
  {
    refuses: ({ from, to }) =>
      isIn('src/http/format', from) && !isIn('src/http/format', to) && !['errors', 'language'].includes(findPlace(to)),
    because: 'a format must not depend on routes, SQL or features',
  },
  {
    refuses: ({ from, to }) => isIn('src', from) && !isIn('src', to) && !isClientUseOfEmit(from, to),
    because:
      'the service must not depend on code outside src/; only `emit` uses code of the client, to group events into batches',
  },
  {
    refuses: ({ from, to }) => isIn('client/src', from) && !isIn('client/src', to),
    because: 'the client is a package without dependencies',
  },
  {
    refuses: ({ from, to }) => isIn('scripts', from) && (isIn('test', to) || isIn('bench', to)),
    because: 'the scripts must not depend on the code of the tests or the bench',
  },
  {
    refuses: ({ from, to }) => (isIn('test', from) && isIn('bench', to)) || (isIn('bench', from) && isIn('test', to)),
    because:
      'the bench has its own package.json, so the tests run without its packages, and the bench without the tests',
  },
]

/**
 * Returns the name of the folder directly below src/, or of a file directly in src/. Returns an empty string for a path
 * outside src/.
 */
export function findPlace(path: string): string {
  return /^src\/([^/]+?)(?:\.ts)?(?:\/|$)/.exec(path)?.[1] ?? ''
}

/**
 * Returns the index of a path in `LEVELS`. The highest level has the index 0. For a path without a level, the index is
 * -1.
 */
function findLevel(path: string): number {
  return LEVELS.findIndex(places => places.includes(findPlace(path)))
}

function isFeature(path: string): boolean {
  return FEATURES.includes(findPlace(path))
}

function isIn(folder: string, path: string): boolean {
  return path.startsWith(`${folder}/`)
}

function isClientUseOfEmit(from: string, to: string): boolean {
  return from === 'src/cli/emit.ts' && to === 'client/src/batches.ts'
}

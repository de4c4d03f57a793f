// npm run imports: who may import whom, with the reason for each refusal. Arrows only go down.
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'

const FEATURES = ['auth', 'accounts', 'notifications', 'games', 'web']
const GROUND = ['http', 'db', 'mail', 'limits', 'jobs', 'metrics', 'audit', 'log', 'errors', 'config', 'settings']

type Import = { from: string; to: string; typeOnly: boolean }
type Rule = { refuses: (edge: Import) => boolean; because: string }

const RULES: Rule[] = [
  {
    refuses: ({ from, to, typeOnly }) => GROUND.includes(placeOf(from)) && FEATURES.includes(placeOf(to)) && !typeOnly,
    because:
      'the ground (http, db, mail, limits, jobs, metrics, audit, log, errors, config, settings) knows no feature, or nothing could stand on it alone',
  },
  {
    refuses: ({ from, to }) =>
      FEATURES.includes(placeOf(from)) && FEATURES.includes(placeOf(to)) && !mayUse(placeOf(from), placeOf(to)),
    because: 'features use one another only downwards: games → notifications, users; auth → users; levels → users',
  },
  {
    refuses: ({ from, to, typeOnly }) => FEATURES.includes(placeOf(from)) && placeOf(to) === 'context' && !typeOnly,
    because: 'the context is made by the process and stops at the route; a feature sees its type alone',
  },
  {
    refuses: ({ from, to, typeOnly }) =>
      [...FEATURES, ...GROUND].includes(placeOf(from)) &&
      ['app', 'cli', 'main', 'personal-data', 'retention', 'service'].includes(placeOf(to)) &&
      !typeOnly,
    because:
      'app, cli, service and their like compose the features; a feature that reached up would be composed by itself',
  },
  {
    refuses: ({ from, to }) => placeOf(from) !== 'context' && to === 'src/mail/smtp.ts',
    because: 'only the context names implementations; everybody else takes the port',
  },
  {
    refuses: ({ from, to }) => FEATURES.includes(placeOf(from)) && placeOf(to) === 'metrics',
    because: 'a feature is handed plain functions to call, and knows no metrics',
  },
]

/** levels.schema is part of what a user looks like, hence users → levels. */
function mayUse(from: string, to: string): boolean {
  if (from === to) return true
  const down: Record<string, string[]> = {
    games: ['notifications', 'users'],
    auth: ['users'],
    levels: ['users'],
    users: ['levels'],
  }
  return down[from]?.includes(to) ?? false
}

function placeOf(path: string): string {
  return path
    .replace(/^src\//, '')
    .split('/')[0]!
    .replace(/\.ts$/, '')
}

function importsOf(file: string): Import[] {
  const text = readFileSync(file, 'utf8')
  const fixed = text.matchAll(/^(?:import|export)\s+(type\s)?[^'"]*?from\s+'(\.[^']+)'/gm)
  // What is loaded only when it is needed.
  const late = text.matchAll(/\b(?<!typeof )import\(()'(\.[^']+)'\)/g)
  return [...fixed, ...late].map(([, type, target]) => ({
    from: file,
    to: normalize(join(dirname(file), target!)),
    typeOnly: Boolean(type),
  }))
}

const edges = globSync('src/**/*.ts').flatMap(importsOf)
const refused = edges.flatMap(edge =>
  RULES.filter(rule => rule.refuses(edge)).map(rule => `${edge.from} must not import ${edge.to}:\n  ${rule.because}.`),
)
if (refused.length > 0) {
  console.error(refused.join('\n'))
  process.exit(1)
}
// Types cost nothing.
const costly = globSync('src/**/*.ts').filter(file =>
  /^import (?!type )[^'"]*'node:http'/m.test(readFileSync(file, 'utf8')),
)
if (costly.length > 0) {
  console.error(`${costly.join(', ')} must not import node:http:\n  src/http/format/status.ts says what that costs.`)
  process.exit(1)
}
console.log(`${edges.length} imports, all downwards`)

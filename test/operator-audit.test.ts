import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { after, before, describe, test } from 'node:test'
import { harness, settingsFor } from './support/app.ts'
import { makeUser } from './support/factories.ts'
import { operatorCommands } from './support/operator.ts'
import { courtside, type Service, startService } from './support/service.ts'

const h = harness()
const { runCommand, writeInput } = operatorCommands(h)

/** Returns the audit lines that a command wrote to stderr. */
function readAudit(errors: string): Record<string, unknown>[] {
  const lines = errors.split('\n').filter(line => line.startsWith('{'))
  return lines.map(line => JSON.parse(line)).filter(line => line.audit)
}

const SCALE = [{ slug: 'bronze', name: 'Bronze', description: 'Pour commencer', position: 1 }]

const EVENT = {
  specversion: '1.0',
  id: '1',
  source: '/audit',
  type: 'game_created',
  time: '2026-01-17T10:00:00Z',
  data: { game_id: 77, creator_id: 1, player_ids: [], starts_at: '2026-01-19T18:00:00+01:00' },
}

/** Commands that only read, or that change neither the database nor anything in a node. */
const UNAUDITED = ['levels list', 'users show', 'secret', 'openapi', 'serve']

/** The audited commands with their arguments. */
const AUDITED: Record<string, (service: Service, email: string) => Promise<string[]>> = {
  migrate: async () => [],
  prune: async () => [],
  'levels import': async () => [await writeInput('scale.json', SCALE)],
  'users sign-out': async (_, email) => [email],
  'users unlock': async (_, email) => [email],
  'users export': async (_, email) => [email],
  'users delete': async (_, email) => [email, '--yes'],
  emit: async service => [await writeInput('event.json', EVENT), '--url', service.address],
}

/** This command needs Citus, so `npm run test:citus` checks its line. */
const NEEDS_CITUS = 'distribute'

describe('the audit lines of operator commands', () => {
  let service: Service
  before(async () => {
    service = await startService(settingsFor(h.database.url))
  })
  after(() => service.stop())

  for (const [name, findArguments] of Object.entries(AUDITED)) {
    test(`${name} writes one audit line to stderr, without the e-mail address and even with LOG_LEVEL=error`, async () => {
      const user = await makeUser(h)
      const args = [...name.split(' '), ...(await findArguments(service, user.email)), '--json']
      const { code, output, errors } = await courtside(args, { ...settingsFor(h.database.url), LOG_LEVEL: 'error' })
      assert.equal(code, 0, errors)
      JSON.parse(output)
      const lines = readAudit(errors).map(({ time: _time, ...line }) => line)
      assert.deepEqual(lines, [
        {
          level: 30,
          audit: 'operator_command',
          command: name,
          outcome: 'done',
          operator: process.env.SUDO_USER ?? userInfo().username,
          ...(name.startsWith('users ') && { user_id: user.id }),
          msg: 'audit',
        },
      ])
      assert.ok(!errors.includes(user.email))
    })
  }

  test('a command that fails writes a line with the outcome `failed`', async () => {
    const user = await makeUser(h)
    const level = await h.database.sql<{ id: number }>`select id from game_level limit 1`
    await h.database.sql`update app_user set game_level_id = ${level[0]!.id} where id = ${user.id}`
    const other = [{ ...SCALE[0], slug: 'other' }]
    const { code, errors } = await runCommand('levels', 'import', await writeInput('other.json', other))
    assert.equal(code, 1)
    assert.deepEqual(
      readAudit(errors).map(({ command, outcome }) => [command, outcome]),
      [['levels import', 'failed']],
    )
  })

  test('a command fails if its output cannot be written, and prints its result if only the audit line cannot', async () => {
    const { email } = await makeUser(h)
    const runInShell = (command: string[], redirection: string) => {
      const args = ['-c', `"$0" "$@" ${redirection}`, process.execPath, 'bin/courtside.js', ...command]
      return spawnSync('sh', args, { env: { ...process.env, ...settingsFor(h.database.url) }, encoding: 'utf8' })
    }
    const exported = runInShell(['users', 'export', email], '>/dev/full')
    assert.equal(exported.status, 1)
    assert.match(exported.stderr, /no space left/)
    assert.equal(runInShell(['secret'], '>/dev/full').status, 1)
    const unlocked = runInShell(['users', 'unlock', email], '2>/dev/full')
    assert.deepEqual([unlocked.status, unlocked.stdout], [1, 'Unlocked.\n'])
  })

  test('commands that only read write no audit line', async () => {
    const { email } = await makeUser(h)
    for (const args of [['levels', 'list'], ['users', 'show', email], ['secret'], ['openapi']]) {
      const { code, errors } = await runCommand(...args)
      assert.deepEqual([code, readAudit(errors)], [0, []], args.join(' '))
    }
  })

  test('every command in docs/operations.md is audited or only reads', async () => {
    const text = await readFile(new URL('../docs/operations.md', import.meta.url), 'utf8')
    const [, section] = text.split('\n## Commands\n')
    const cells = [...section!.split(/^## /m)[0]!.matchAll(/^\| (`.+?`) \|/gm)].map(([, cell]) => cell!)
    const names = cells.flatMap(cell =>
      [...cell.matchAll(/`([a-z -]+?)(?: (?:FILE|EMAIL))?`/g)].map(([, name]) => name),
    )
    assert.deepEqual(names.sort(), [...Object.keys(AUDITED), ...UNAUDITED, NEEDS_CITUS].sort())
  })
})

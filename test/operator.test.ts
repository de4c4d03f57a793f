import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { prune } from '../src/retention.ts'
import { harness, JWT_SECRET, settingsFor } from './support/app.ts'
import { startServer } from './support/client.ts'
import { makeNotifications, makeUser } from './support/factories.ts'
import { newEmail, profile } from './support/scenario.ts'
import { courtside, type Service, startService } from './support/service.ts'

const h = harness()

let folder: string
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'courtside-operator-'))
})
after(() => rm(folder, { recursive: true, force: true }))

/** Runs a command on the database of this file. */
function runCommand(...args: string[]) {
  return courtside(args, settingsFor(h.database.url))
}

/** Runs a command with `--json`. @returns the parsed output */
async function runJson(...args: string[]) {
  const { code, output, errors } = await runCommand(...args, '--json')
  assert.equal(code, 0, errors)
  return JSON.parse(output)
}

async function writeInput(name: string, content: unknown): Promise<string> {
  const path = join(folder, name)
  await writeFile(path, typeof content === 'string' ? content : JSON.stringify(content))
  return path
}

describe('every command', () => {
  const commands = [
    ...['serve', 'migrate', 'secret', 'openapi', 'prune', 'emit', 'levels list', 'levels import'],
    ...['show', 'sign-out', 'unlock', 'delete', 'export'].map(action => `users ${action}`),
  ]
  for (const name of commands) {
    test(`${name} --help prints the usage, and an unknown option exits with 64`, async () => {
      const help = await runCommand(...name.split(' '), '--help')
      assert.equal(help.code, 0)
      assert.match(help.output, new RegExp(`^Usage: npm run courtside -- ${name}`))
      const wrong = await runCommand(...name.split(' '), '--wrong')
      assert.equal(wrong.code, 64)
      assert.match(wrong.errors, /--wrong/)
    })
  }

  test('help lists every command, and a missing argument exits with 64', async () => {
    const { code, output } = await courtside(['--help'])
    assert.equal(code, 0)
    for (const name of commands) assert.ok(output.includes(`  ${name.split(' ')[0]} `))
    for (const args of [
      ['users', 'show'],
      ['users'],
      ['levels'],
      ['levels', 'import'],
      ['emit'],
      ['users', 'show', 'no address'],
    ]) {
      assert.equal((await runCommand(...args)).code, 64, args.join(' '))
    }
  })
})

describe('users', () => {
  test('users show finds an account by its e-mail in upper case', async () => {
    const user = await makeUser(h)
    const shown = await runJson('users', 'show', user.email.toUpperCase())
    assert.deepEqual([shown.id, shown.email, shown.game_level], [user.id, user.email, null])
    assert.match((await runCommand('users', 'show', user.email)).output, /first_name {3}Marie/)
  })

  test('users show exits with 1 for an unknown e-mail', async () => {
    const { code, errors } = await runCommand('users', 'show', 'nobody@example.com')
    assert.deepEqual([code, errors], [1, 'There is no account with the e-mail nobody@example.com.\n'])
  })

  test('users sign-out ends every session of an account', async () => {
    const user = await makeUser(h)
    assert.deepEqual(await runJson('users', 'sign-out', user.email), { ended: 1 })
    const [session] = await h.database.sql`select end_reason from session where user_id = ${user.id}`
    assert.equal(session!.end_reason, 'operator')
  })

  const requestCode = (body: object) => h.call('POST', '/api/v1/auth/request-otp', { body })
  const addWrongGuesses = (email: string) => h.database.sql`
    update sign_in_code set wrong_guesses = 50 where email = ${email}`

  test('users unlock clears wrong guesses and the wait', async () => {
    const { email } = await makeUser(h)
    await requestCode({ email })
    await addWrongGuesses(email)
    assert.equal((await requestCode({ email })).status, 429)
    assert.deepEqual(await runJson('users', 'unlock', email), { unlocked: true })
    assert.equal((await requestCode({ email })).status, 200)
  })

  test('users unlock keeps a pending sign-up, which prune does not delete', async () => {
    const email = newEmail()
    await requestCode(profile(email))
    await addWrongGuesses(email)
    assert.equal((await requestCode({ email })).status, 429)
    assert.deepEqual(await runJson('users', 'unlock', email), { unlocked: true })
    await prune(h.database.sql, h.ctx.config, h.ctx.now())
    assert.equal((await requestCode({ email })).status, 200)
    const [code] = await h.database.sql`select purpose, first_name from sign_in_code where email = ${email}`
    assert.deepEqual(code, { purpose: 'sign_up', first_name: 'Marie' })
  })

  test('users unlock exits with 1 for an e-mail that never requested a code', async () => {
    const { code, errors } = await runCommand('users', 'unlock', 'nobody@example.com')
    assert.equal(code, 1)
    assert.match(errors, /^There is no account with the e-mail nobody@example\.com/)
  })

  test('users delete needs a confirmation or --yes, and then leaves no row', async () => {
    const user = await makeUser(h)
    await h.call('POST', '/api/v1/auth/request-otp', { body: { email: user.email } })
    const unconfirmed = await runCommand('users', 'delete', user.email)
    assert.equal(unconfirmed.code, 64)
    assert.match(unconfirmed.errors, /--yes/)
    assert.equal((await runCommand('users', 'show', user.email)).code, 0)
    assert.deepEqual(await runJson('users', 'delete', user.email, '--yes'), { deleted: true })
    assert.equal((await runCommand('users', 'show', user.email)).code, 1)
    const left = await h.database.sql`select email from sign_in_address where email = ${user.email}`
    assert.deepEqual(left, [])
  })

  test('users export prints all data about a person', async () => {
    const user = await makeUser(h, { firstName: 'Zoé' })
    const other = await makeUser(h)
    await makeNotifications(h, user.id, 2)
    await makeNotifications(h, other.id, 1, { message: 'Zoé a quitté', actorId: user.id, actorNameLength: 3 })
    await h.call('POST', '/api/v1/auth/request-otp', { body: { email: user.email } })
    await h.database.sql`
      insert into game (id, creator_id, player_ids, updated_at) values (1, ${user.id}, ${[user.id, other.id]}, now())`
    const exported = await runJson('users', 'export', user.email)
    assert.equal(exported.account.email, user.email)
    assert.equal(exported.sessions.length, 1)
    assert.equal(exported.codes.length, 1)
    assert.equal(exported.notifications.received.length, 2)
    assert.deepEqual(
      exported.notifications.naming.map((row: { message: string }) => row.message),
      ['Zoé a quitté'],
    )
    assert.deepEqual([exported.games[0].created, exported.games[0].plays], [true, true])
    // This list must change with every new table that refers to a user or an e-mail; then `export` must include it too.
    const tables = await h.database.sql<{ table: string }>`
      select distinct table_name as table from information_schema.columns
      where table_schema = 'public' and column_name in ('user_id', 'email', 'creator_id', 'actor_id', 'player_ids')
      order by 1`
    assert.deepEqual(
      tables.map(row => row.table),
      ['app_user', 'game', 'notification', 'session', 'sign_in_address', 'sign_in_code'],
    )
  })
})

describe('levels', () => {
  const scale = [
    { slug: 'intermediaire', name: 'Intermédiaire', description: 'Autre', position: 2 },
    { slug: 'bronze', name: 'Bronze', description: '', position: 1 },
  ].map(level => ({ ...level, description: level.description || 'Pour commencer' }))

  test('levels import replaces the levels, and clears a user’s choice only with --force', async () => {
    const user = await makeUser(h)
    const before = await runJson('levels', 'list')
    const chooseLevel = (id: number) =>
      h.call('POST', '/api/v1/auth/level-assessment', { token: user.token, body: { game_level_id: id } })
    await chooseLevel(before.find((level: { slug: string }) => level.slug === 'expert').id)
    const path = await writeInput('levels.json', scale)
    const refused = await runCommand('levels', 'import', path)
    assert.equal(refused.code, 1)
    assert.match(refused.errors, /chosen expert\. Nothing was changed/)
    assert.deepEqual(await runJson('levels', 'list'), before)

    const kept = before.find((level: { slug: string }) => level.slug === 'intermediaire')
    await chooseLevel(kept.id)
    assert.deepEqual(await runJson('levels', 'import', path), { levels: 2, removed: 7 })
    const now = await runJson('levels', 'list')
    assert.deepEqual(
      now.map((level: { slug: string }) => level.slug),
      ['bronze', 'intermediaire'],
    )
    const me = await h.call('GET', '/api/v1/auth/me', { token: user.token })
    assert.deepEqual(me.body.data.game_level, { ...scale[0], id: kept.id })
    assert.deepEqual(await runJson('levels', 'import', await writeInput('one.json', [scale[1]]), '--force'), {
      levels: 1,
      removed: 1,
    })
  })

  test('levels import names every fault of a file', async () => {
    const path = await writeInput('bad.json', [
      { slug: 'A B', name: 'x', description: 'y', position: 1 },
      { slug: 'ok' },
    ])
    const { code, errors } = await runCommand('levels', 'import', path)
    assert.equal(code, 1)
    assert.match(errors, /level 1: .*slug[\s\S]*level 2: .*name[\s\S]*level 2: .*position/)
  })
})

describe('emit', () => {
  let service: Service
  before(async () => {
    service = await startService(settingsFor(h.database.url))
  })
  after(() => service.stop())

  const event = (id: string, type = 'game_created') => ({
    specversion: '1.0',
    id,
    source: '/emit',
    type,
    time: '2026-01-17T10:00:00Z',
    data: { game_id: 77, creator_id: 1, player_ids: [], starts_at: '2026-01-19T18:00:00+01:00' },
  })

  test('emit sends one event, an array, one per line or many, and exits with 1 if one is rejected', async () => {
    const emit = (path: string) => runCommand('emit', path, '--url', `${service.address}/`, '--json')
    for (const content of [
      event('1'),
      [event('2'), event('3')],
      `${JSON.stringify(event('4'))}\n\n${JSON.stringify(event('5'))}\n`,
    ]) {
      const { code, output, errors } = await emit(await writeInput('events', content))
      assert.equal(code, 0, errors)
      for (const result of JSON.parse(output)) assert.equal(result.status, 'accepted')
    }
    const many = await emit(
      await writeInput(
        'many',
        Array.from({ length: 205 }, (_, index) => event(`many ${index}`)),
      ),
    )
    assert.equal(JSON.parse(many.output).length, 205)
    const refused = await emit(await writeInput('refused', [event('6'), event('7', 'game_eaten')]))
    assert.equal(refused.code, 1)
    assert.deepEqual(
      JSON.parse(refused.output).map((result: { status: string }) => result.status),
      ['accepted', 'rejected'],
    )
  })

  test('emit splits a hundred events that are too large for one batch', async () => {
    // The service ignores unknown keys, but they count towards the size. "é" has two bytes.
    const large = Array.from({ length: 100 }, (_, index) => ({ ...event(`large ${index}`), note: 'é'.repeat(10_000) }))
    const { code, output, errors } = await runCommand(
      'emit',
      await writeInput('large', large),
      '--url',
      service.address,
      '--json',
    )
    assert.equal(code, 0, errors)
    assert.deepEqual(
      JSON.parse(output).map(({ id, status }: { id: string; status: string }) => [id, status]),
      large.map(({ id }) => [id, 'accepted']),
    )
  })

  test('emit says when no node answers', async () => {
    const { code, errors } = await runCommand(
      'emit',
      await writeInput('event', event('8')),
      '--url',
      'http://127.0.0.1:9',
    )
    assert.deepEqual([code, errors], [1, 'No node answers at http://127.0.0.1:9.\n'])
  })

  test('emit says when a proxy or another program answers', async () => {
    for (const status of [502, 200]) {
      const other = await startServer((_, response) => response.writeHead(status).end('<h1>Hello</h1>'))
      const { code, errors } = await runCommand('emit', await writeInput('event', event('9')), '--url', other.url)
      assert.deepEqual(
        [code, errors],
        [1, `The server at ${other.url} is not a Courtside node: it answered ${status}.\n`],
      )
      await other.close()
    }
  })

  test('emit says when the node refuses the key', async () => {
    const env = { ...settingsFor(h.database.url), INTAKE_KEYS: JWT_SECRET }
    const { code, errors } = await courtside(
      ['emit', await writeInput('event', event('10')), '--url', service.address],
      env,
    )
    assert.deepEqual([code, errors], [1, 'The node refused the events: 401 Unauthenticated.\n'])
  })
})

test('commands work beside a running embedded node, and on its data when it is stopped', async () => {
  const dataDir = join(folder, 'data')
  const service = await startService({ DATA_DIR: dataDir })
  const email = newEmail()
  const listLevels = () => courtside(['levels', 'list', '--json'], { DATA_DIR: dataDir })
  assert.equal(JSON.parse((await listLevels()).output).length, 8)
  assert.equal((await courtside(['users', 'show', email], { DATA_DIR: dataDir })).code, 1)
  assert.equal((await fetch(`${service.address}/readyz`)).status, 200)
  await service.stop()
  assert.equal(JSON.parse((await listLevels()).output).length, 8)
  await assert.rejects(readFile(join(dataDir, 'postgres/postmaster.pid')))
})

import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { prune } from '../src/retention.ts'
import { harness } from './support/app.ts'
import { makeNotifications, makeUser } from './support/factories.ts'
import { operatorCommands } from './support/operator.ts'
import { newEmail, profile } from './support/scenario.ts'
import { courtside, startService } from './support/service.ts'

const h = harness()
const { runCommand, runJson } = operatorCommands(h)

describe('every command', () => {
  const commands = [
    ...['serve', 'migrate', 'secret', 'openapi', 'prune', 'emit', 'distribute'],
    ...['levels list', 'levels import'],
    ...['show', 'sign-out', 'unlock', 'delete', 'export'].map(action => `users ${action}`),
  ]
  for (const name of commands) {
    test(`${name} prints its usage with --help, and exits with 64 for an unknown option`, async () => {
      const help = await runCommand(...name.split(' '), '--help')
      assert.equal(help.code, 0)
      assert.match(help.output, new RegExp(`^Usage: npm run courtside -- ${name}`))
      const wrong = await runCommand(...name.split(' '), '--wrong')
      assert.equal(wrong.code, 64)
      assert.match(wrong.errors, /--wrong/)
    })
  }

  test('courtside --help lists every command, and a command without a required argument exits with 64', async () => {
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
  test('users show finds an account by its e-mail address in upper case', async () => {
    const user = await makeUser(h)
    const shown = await runJson('users', 'show', user.email.toUpperCase())
    assert.deepEqual([shown.id, shown.email, shown.game_level], [user.id, user.email, null])
    assert.match((await runCommand('users', 'show', user.email)).output, /first_name {3}Marie/)
  })

  test('users show exits with 1 if no account has the e-mail address', async () => {
    const { code, errors } = await runCommand('users', 'show', 'nobody@example.com')
    assert.deepEqual([code, errors], [1, 'There is no account with the e-mail nobody@example.com.\n'])
  })

  test('users sign-out ends all sessions of an account', async () => {
    const user = await makeUser(h)
    assert.deepEqual(await runJson('users', 'sign-out', user.email), { ended: 1 })
    const [session] = await h.database.sql`select end_reason from session where user_id = ${user.id}`
    assert.equal(session!.end_reason, 'operator')
  })

  const requestCode = (body: object) => h.call('POST', '/api/v1/auth/request-otp', { body })
  const addWrongGuesses = (email: string) => h.database.sql`
    update sign_in_address set guesses = 99, guesses_since = now(), guesses_full_at = now() + interval '90 days'
    where email = ${email}`

  test('users unlock resets the budget and the waits for the next code', async () => {
    const { email } = await makeUser(h)
    await requestCode({ email })
    await addWrongGuesses(email)
    assert.equal((await requestCode({ email })).status, 429)
    assert.deepEqual(await runJson('users', 'unlock', email), { unlocked: true })
    assert.equal((await requestCode({ email })).status, 200)
    const [address] = await h.database.sql`
      select guesses, guesses_since, guesses_full_at from sign_in_address where email = ${email}`
    assert.deepEqual(address, { guesses: 0, guesses_since: null, guesses_full_at: null })
    const codes = await h.database.sql`select mails from sign_in_code where email = ${email}`
    assert.deepEqual(codes, [{ mails: 1 }])
  })

  test('users unlock keeps a pending sign-up, and prune does not delete this sign-up afterwards', async () => {
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

  test('users unlock exits with 1 if no code was ever requested for the e-mail address', async () => {
    const { code, errors } = await runCommand('users', 'unlock', 'nobody@example.com')
    assert.equal(code, 1)
    assert.match(errors, /^There is no account with the e-mail nobody@example\.com/m)
  })

  test('users delete requires a confirmation or --yes, and deletes the account with its sign-in data', async () => {
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
    await makeNotifications(h, other.id, 1, {
      message: 'Zoé a quitté',
      actorId: user.id,
      actorName: { start: 0, length: 3 },
    })
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
    // A new table that refers to a user or an e-mail address must be added to `users export` and to the list of
    // tables below.
    const tables = await h.database.sql<{ table: string }>`
      select distinct table_name as table from information_schema.columns
      where table_schema = current_schema() and column_name in ('user_id', 'email', 'creator_id', 'actor_id', 'player_ids')
      order by 1`
    assert.deepEqual(
      tables.map(row => row.table),
      [
        ...['app_user', 'digest_attempt', 'game', 'mail_state', 'notification', 'notification_preference', 'outbox'],
        ...['push_subscription', 'session', 'sign_in_address', 'sign_in_code', 'waiting_mail'],
      ],
    )
  })
})

test('commands work while a node with an embedded database runs, and after this node has stopped', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'courtside-operator-'))
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
  await rm(folder, { recursive: true })
})

// The previous version queued mails with graphile-worker. These tests start this version on the data of the previous
// version: waiting mails, sessions and planned reminders.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { Logger, runMigrations } from 'graphile-worker'
import pg from 'pg'
import { createTokens } from '../src/auth/jwt.ts'
import { signFirstToken } from '../src/auth/session-tokens.ts'
import { settingsFor } from './support/app.ts'
import { administer } from './support/database.ts'
import { post } from './support/load.ts'
import { KEYS } from './support/outbox.ts'
import { type Service, startService } from './support/service.ts'
import { smtpServer } from './support/smtp.ts'
import { waitUntil } from './support/wait-until.ts'

/** The migrations of the previous version. */
const FILES = [
  ...['0001_accounts.sql', '0002_notifications.sql', '0003_games.sql', '0004_schedule.sql'],
  ...['0005_unlogged_throttle.sql', '0006_facts_together.sql', '0007_dedup_key.sql'],
]

/** Creates a database as the previous version left it. */
async function previousDatabase() {
  const name = `previous_${randomUUID().slice(0, 8)}`
  await administer(`create database ${name}`)
  const url = Object.assign(new URL(process.env.TEST_DATABASE_URL!), { pathname: `/${name}` }).href
  const pool = new pg.Pool({ connectionString: url })
  pool.on('error', () => {}).on('connect', client => client.on('error', () => {}))
  await pool.query(
    'create table migration (name text constraint migration_pkey primary key, applied_at timestamptz not null default now())',
  )
  for (const file of FILES) {
    await pool.query(await readFile(new URL(`../migrations/${file}`, import.meta.url), 'utf8'))
    await pool.query('insert into migration (name) values ($1)', [file])
  }
  await runMigrations({ pgPool: pool, logger: new Logger(() => () => {}) })
  await pool.query(`insert into migration (name) values ('graphile-worker@0.18.0')`)
  return {
    url,
    query: async (text: string, values: unknown[] = []) => (await pool.query(text, values)).rows,
    async drop() {
      await pool.end()
      await administer(`drop database ${name}`)
    },
  }
}

/** Stores the code of a sign-up and queues its mail, with the statements of the previous version. */
async function askAsPreviousVersion({ query }: Awaited<ReturnType<typeof previousDatabase>>, email: string) {
  const id = randomUUID()
  const sealed = KEYS.seal(id, '4921')
  await query('insert into sign_in_address (email, sent_at, mailed) values ($1, now(), true)', [email])
  await query(
    `insert into sign_in_code (id, email, purpose, mac, sent_at, expires_at,
      first_name, last_name, terms_version, terms_accepted_at)
    values ($1, $2, 'sign_up', $3, now(), now() + interval '15 minutes', 'Zoé', 'Martin', '1', now())`,
    [id, email, KEYS.mac(id, '4921')],
  )
  await query(`select graphile_worker.add_job('send_code', $1::json, job_key => $2, job_key_mode => 'unsafe_dedupe')`, [
    JSON.stringify({ code_id: id, sealed, language: 'fr' }),
    id,
  ])
}

test('an upgrade from the version with graphile-worker loses no waiting mail, no session and no planned reminder', {
  timeout: 90_000,
}, async t => {
  const database = await previousDatabase()
  const { query } = database
  const smtp = await smtpServer()
  let service: Service | undefined
  t.after(async () => {
    await service?.stop()
    await smtp.close()
    await database.drop()
  })
  const mailsTo = (email: string) => smtp.mails.filter(mail => mail.to.includes(email))
  const [user] = await query(`
    insert into app_user (email, first_name, last_name, locale, terms_version, terms_accepted_at, created_at, updated_at)
    values ('known@example.com', 'K', 'M', 'fr', '1', now(), now(), now()) returning id::int`)
  const now = new Date()
  const [session] = await query(
    `insert into session (user_id, created_at, expires_at, issued_at) values ($1, $2, $3, $2) returning id`,
    [user.id, now, new Date(now.getTime() + 604_800_000)],
  )
  const token = signFirstToken(createTokens(KEYS), user.id, session.id, now)
  await query(
    `insert into game (id, creator_id, player_ids, place, starts_at, updated_at)
    values (7, $1, array[$1::bigint], 'Court 1', now() + interval '1 hour', now())`,
    [user.id],
  )
  await query(`insert into game_schedule (game_id, type, due_at, starts_at)
    select id, 'game_reminder', now(), starts_at from game`)

  const waiting = ['one@example.com', 'two@example.com', 'killed@example.com', 'running@example.com']
  for (const email of waiting) await askAsPreviousVersion(database, email)
  const lock = (email: string, age: string) =>
    query(
      `update graphile_worker._private_jobs set locked_by = 'worker', locked_at = now() - $2::interval, attempts = 1
      where payload ->> 'code_id' = (select id::text from sign_in_code where email = $1)`,
      [email, age],
    )
  await lock('killed@example.com', '2 minutes')
  // A worker of the previous version sends this mail right now.
  await lock('running@example.com', '1 second')

  service = await startService(settingsFor(database.url, smtp.url))
  await smtp.until(() => waiting.slice(0, 3).every(email => mailsTo(email).length > 0))
  // A process of the previous version still answers requests.
  await askAsPreviousVersion(database, 'later@example.com')
  await smtp.until(() => mailsTo('later@example.com').length > 0)
  const left = await query('select locked_by from graphile_worker._private_jobs')
  assert.deepEqual(left, [{ locked_by: 'worker' }])
  assert.deepEqual(
    [...waiting, 'later@example.com'].map(email => mailsTo(email).length),
    [1, 1, 1, 0, 1],
  )

  const answer = await post([service], '/api/v1/auth/verify-otp', { email: 'killed@example.com', code: '4921' })
  assert.equal(answer?.status, 200)
  const me = await fetch(`${service.address}/api/v1/auth/me`, { headers: { authorization: `Bearer ${token}` } })
  assert.equal(me.status, 200)
  await waitUntil(async () => (await query('select type from notification')).length === 1)
})

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import pg from 'pg'
import { INTAKE_KEY, settingsFor } from './support/app.ts'
import { administer } from './support/database.ts'
import { post, scoreEvent, signUpByMail } from './support/load.ts'
import { courtside, startService } from './support/service.ts'
import { smtpServer } from './support/smtp.ts'

const SQL = /```sql\n(.*?)```/s.exec(
  readFileSync(new URL('../docs/operations.md', import.meta.url), 'utf8').split('\n## The database\n')[1]!,
)![1]!

test('with the documented rights, one role migrates the database and another role runs the service', {
  timeout: 300_000,
}, async t => {
  const suffix = randomUUID().slice(0, 8)
  const name = `roles_${suffix}`
  await administer(`create database ${name}`)
  const url = Object.assign(new URL(process.env.TEST_DATABASE_URL!), { pathname: `/${name}` })
  const superuser = new pg.Client({ connectionString: url.href })
  const smtp = await smtpServer()
  const stops: (() => Promise<unknown>)[] = [smtp.close]
  t.after(async () => {
    for (const stop of stops.reverse()) await stop()
    await superuser.end()
    await administer(`drop database ${name} with (force)`)
    await administer(`drop role owner_${suffix}, service_${suffix}`)
  })
  await superuser.connect()
  await superuser.query(SQL.replaceAll(/courtside_(owner|service)/g, `$1_${suffix}`))
  const urlOf = (role: string) => Object.assign(new URL(url), { username: `${role}_${suffix}`, password: 'pw' }).href
  for (const role of ['owner', 'service']) {
    await superuser.query(`alter role ${role}_${suffix} password 'pw'`)
  }

  const env = (role: string) => settingsFor(urlOf(role), smtp.url)
  await assert.rejects(startService(env('service')), /permission denied for schema courtside/)
  const migrated = await courtside(['migrate'], env('owner'))
  assert.equal(migrated.code, 0, migrated.errors)
  const service = await startService(env('service'))
  stops.push(() => service.stop())
  const token = await signUpByMail([service], smtp, 'zoe@example.com')
  await superuser.query('set search_path = courtside')
  const { rows } = await superuser.query(
    `insert into app_user (email, first_name, last_name, locale, terms_version, terms_accepted_at, created_at, updated_at)
    select n || '@example.com', 'P', 'P', 'fr', '1', now(), now(), now() from generate_series(1, 4) as n returning id::int`,
  )
  const reported = await post(
    [service],
    '/internal/v1/events',
    scoreEvent(
      1,
      rows.map(row => row.id),
    ),
    INTAKE_KEY,
  )
  assert.equal(reported?.status, 202)
  const refreshed = await post([service], '/api/v1/auth/refresh', {}, token)
  assert.equal(refreshed?.status, 200)
  for (const command of [['prune'], ['levels', 'list'], ['users', 'delete', 'zoe@example.com', '--yes']]) {
    const { code, errors } = await courtside(command, env('service'))
    assert.equal(code, 0, `${command}: ${errors}`)
  }
  // This role cannot change the schema.
  const limited = new pg.Client({ connectionString: urlOf('service') })
  await limited.connect()
  stops.push(() => limited.end())
  for (const statement of ['create table courtside.x ()', 'drop table courtside.session', 'create schema y']) {
    await assert.rejects(limited.query(statement), /permission denied|must be owner/, statement)
  }
  assert.ok(!service.lines.some(line => line.includes('permission denied')), service.lines.join('\n'))
})

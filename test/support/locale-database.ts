import { randomUUID } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { splitStatements } from '../../src/db/split-statements.ts'
import { connect, type Database } from '../../src/db/sql.ts'
import { administer } from './database.ts'

const FOLDER = new URL('../../migrations/', import.meta.url)

/** Creates an empty database with a locale of ICU, whose sort order has a version. A hook drops it after the test. */
export async function localeDatabase(t: {
  after(hook: () => Promise<void>): void
}): Promise<{ url: string; sql: Database }> {
  const name = `locale_${randomUUID().slice(0, 8)}`
  await administer(
    `create database ${name} template template0 locale_provider icu icu_locale 'fr' locale 'C.UTF-8' encoding 'UTF8'`,
  )
  const url = Object.assign(new URL(process.env.TEST_DATABASE_URL!), { pathname: `/${name}` }).href
  const sql = connect(url)
  t.after(async () => {
    await sql.close()
    await administer(`drop database ${name} with (force)`)
  })
  return { url, sql }
}

/** Applies the migrations before one with a given name. @returns the names of this migration and the later ones */
export async function prepareBefore(sql: Database, first: string): Promise<string[]> {
  const names = (await readdir(FOLDER)).filter(name => name.endsWith('.sql')).sort()
  if (!names.includes(first)) throw new Error(`there is no migration ${first}`)
  await sql.pool.query(
    'create schema courtside; create table migration (name text primary key, applied_at timestamptz default now())',
  )
  await applyMigrations(
    sql,
    names.filter(name => name < first),
  )
  return names.filter(name => name >= first)
}

/** Applies migrations as `migrate` does, and records them. */
export async function applyMigrations(sql: Database, names: string[]): Promise<void> {
  for (const name of names) {
    for (const statement of splitStatements(await readFile(new URL(name, FOLDER), 'utf8'))) {
      await sql.pool.query(statement)
    }
    await sql.pool.query('insert into migration (name) values ($1)', [name])
  }
}

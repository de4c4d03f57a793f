import assert from 'node:assert/strict'
import { test } from 'node:test'
import { timestamp, timestampOf } from '../src/http/timestamp.ts'
import { testDatabase } from './support/database.ts'

test('what PostgreSQL writes of an instant, in whatever zone, is given as UTC to the second', async () => {
  const database = await testDatabase()
  const instants = [
    '2026-01-17T14:30:00Z',
    '2026-07-01T00:00:59.999999Z',
    '2024-02-29T23:59:59.5Z',
    '2038-01-19T03:14:08Z',
  ]
  for (const zone of ['UTC', 'Europe/Paris', 'America/St_Johns', 'Asia/Kathmandu', 'Pacific/Kiritimati']) {
    const texts = await database.sql.begin(async sql => {
      await sql`select set_config('timezone', ${zone}, true)`
      return sql<{
        text: string
      }>`select at::text as text from unnest(${instants}::timestamptz[]) with ordinality as a (at, n)
        order by n`
    })
    assert.deepEqual(
      texts.map(({ text }) => timestampOf(text)),
      instants.map(instant => timestamp(new Date(instant))),
      zone,
    )
  }
  await database.drop()
})

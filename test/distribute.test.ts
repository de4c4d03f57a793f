import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eraseUser } from '../src/personal-data.ts'
import { harness } from './support/app.ts'
import { makeNotifications, makeUser } from './support/factories.ts'
import { operatorCommands } from './support/operator.ts'

// The tests of the command on a real Citus are in on-demand/citus.ts.

const h = harness()
const { runCommand } = operatorCommands(h)

test('without the extension citus, distribute changes nothing and names the remedy', async () => {
  const readShape = () => h.database.sql`
    select conname from pg_constraint where conrelid = 'notification'::regclass order by conname`
  const before = await readShape()
  const { code, errors } = await runCommand('distribute')
  assert.equal(code, 1)
  assert.match(
    errors,
    /^Not possible: the extension citus is missing\. Run "create extension citus" in this database, on the coordinator and on each worker\.$/m,
  )
  const checked = await runCommand('distribute', '--check', '--json')
  assert.equal(checked.code, 1)
  assert.deepEqual(JSON.parse(checked.output).statements, [])
  assert.deepEqual(await readShape(), before)
})

test('a deletion removes the notifications of the account without the foreign key, which a distributed table lacks', async () => {
  const [user, other] = [await makeUser(h), await makeUser(h)]
  await makeNotifications(h, user.id, 3)
  await makeNotifications(h, other.id, 2)
  await h.database.sql`alter table notification drop constraint notification_user_fkey`
  assert.equal(await eraseUser(h.database.sql, user.id), true)
  const left = await h.database.sql`select distinct user_id from notification`
  assert.deepEqual(left, [{ user_id: other.id }])
})

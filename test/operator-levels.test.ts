import assert from 'node:assert/strict'
import { test } from 'node:test'
import { harness } from './support/app.ts'
import { makeUser } from './support/factories.ts'
import { operatorCommands } from './support/operator.ts'

const h = harness()
const { runCommand, runJson, writeInput } = operatorCommands(h)

const scale = [
  { slug: 'intermediaire', name: 'Intermédiaire', description: 'Autre', position: 2 },
  { slug: 'bronze', name: 'Bronze', description: '', position: 1 },
].map(level => ({ ...level, description: level.description || 'Pour commencer' }))

test('levels import replaces the levels, and requires --force to remove a level that a user chose', async () => {
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

test('levels import lists every fault in a file', async () => {
  const path = await writeInput('bad.json', [{ slug: 'A B', name: 'x', description: 'y', position: 1 }, { slug: 'ok' }])
  const { code, errors } = await runCommand('levels', 'import', path)
  assert.equal(code, 1)
  assert.match(errors, /level 1: .*slug[\s\S]*level 2: .*name[\s\S]*level 2: .*position/)
})

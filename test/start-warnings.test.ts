import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readConfig } from '../src/config.ts'
import { findStartWarnings } from '../src/reach/start-warnings.ts'
import { testDatabase } from './support/database.ts'
import { startService } from './support/service.ts'

const SECRET = 'kuC4vBnmNwzIEYxX0mVQJ1y7s2dGgqLh'
const PRODUCTION = {
  DATABASE_URL: 'postgres://db.example/courtside',
  SMTP_URL: 'smtps://mail.example:465',
  MAIL_FROM: 'club@club.example',
  JWT_SECRET: SECRET,
  INTAKE_KEYS: SECRET,
}
const KEY = { VAPID_PRIVATE_KEY: 'yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw' }
const EMBEDDED = { SMTP_URL: 'smtps://mail.example:465' }

const NO_LINK = 'this process sends no pushes: they need one of LINK_TEMPLATE, APP_URL and PUBLIC_URL'
const NO_KEY = 'this process sends no pushes: they need VAPID_PRIVATE_KEY'
const NO_DIGEST = 'this process sends no mails about unread notifications: their links that unsubscribe need PUBLIC_URL'

const cases: [string, Record<string, string>, string[]][] = [
  ['development', {}, []],
  ['a complete configuration', { ...PRODUCTION, ...KEY, PUBLIC_URL: 'https://courtside.example' }, []],
  ['no PUBLIC_URL', { ...PRODUCTION, ...KEY, APP_URL: 'https://app.example' }, [NO_DIGEST]],
  ['no PUBLIC_URL in a web process', { ...PRODUCTION, ...KEY, APP_URL: 'https://app.example', ROLE: 'web' }, []],
  ['no link', { ...PRODUCTION, ...KEY }, [NO_LINK, NO_DIGEST]],
  ['no key', { ...PRODUCTION, PUBLIC_URL: 'https://courtside.example' }, [NO_KEY]],
  [
    'neither a key nor a link',
    { ...PRODUCTION, ROLE: 'web' },
    [`${NO_KEY}, and one of LINK_TEMPLATE, APP_URL and PUBLIC_URL`],
  ],
  ['a generated key', { ...EMBEDDED, PUBLIC_URL: 'https://courtside.example' }, []],
]
for (const [title, env, expected] of cases) {
  test(`with ${title}, the service reports ${expected.length} missing messages at its start`, () => {
    assert.deepEqual(findStartWarnings(readConfig(env)), expected)
  })
}

test('a process logs each missing message once', { timeout: 60_000 }, async t => {
  const database = await testDatabase()
  t.after(database.drop)
  const service = await startService({ ...PRODUCTION, DATABASE_URL: database.url, ROLE: 'worker' })
  await service.stop()
  const warnings = service.lines
    .filter(line => line.includes('this process sends no'))
    .map(line => JSON.parse(line).msg)
  assert.deepEqual(warnings, [`${NO_KEY}, and one of LINK_TEMPLATE, APP_URL and PUBLIC_URL`, NO_DIGEST])
})

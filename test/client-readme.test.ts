import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { before, describe, type TestContext, test } from 'node:test'
import { harness, INTAKE_KEY } from './support/app.ts'
import { createQueue } from './support/client.ts'
import { listen } from './support/event-stream.ts'
import { makeNotifications, makeUser } from './support/factories.ts'
import { newEmail, queuedCode } from './support/scenario.ts'

const ROOT = new URL('..', import.meta.url).pathname
const readme = await readFile(new URL('../client/README.md', import.meta.url), 'utf8')

/** Returns the first TypeScript code block under a heading. */
function findCode(title: string): string {
  const section = readme.split(/^## /m).find(part => part.startsWith(`${title}\n`))
  const code = /```ts\n([\s\S]*?)```/.exec(section ?? '')?.[1]
  assert.ok(code, `client/README.md has no code under "${title}"`)
  return code
}

/**
 * Code that runs before each example of client/README.md. It defines the variables and functions that the examples use.
 * Each of these functions prints a JSON line.
 */
const PREAMBLE = `
const { createInterface } = await import('node:readline')
const { url, email, code, key, creator_id, player_id = 2 ** 52 } = JSON.parse(process.env.GIVEN)
const say = what => (...values) => console.log(JSON.stringify([what, ...values]))
const askForTheCode = async () => {
  say('code?')()
  for await (const line of createInterface({ input: process.stdin })) return line
}
const [showBadge, showError, countDown] = [say('badge'), say('error'), say('count down')]
const addToTheTop = ({ title }) => say('top')(title)
const showList = list => say('list')(list.length)
`

/** Runs `code` in a separate Node process, which can import the built package. */
function run(t: TestContext, code: string, given: Record<string, unknown>, node = process.execPath) {
  const child = spawn(node, ['--input-type=module', '--eval', PREAMBLE + code], {
    cwd: ROOT,
    env: { GIVEN: JSON.stringify(given) },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  t.after(() => child.kill())
  const { push, next } = createQueue<[what: string, ...values: any[]]>()
  createInterface(child.stdout).on('line', line => push(JSON.parse(line)))
  child.on('exit', status => push(['exit', status]))
  return { child: child as ChildProcess, next }
}

/** Returns the path of an installed Node 20 to 23. The service needs Node 24, but the client package runs on these. */
function findOlderNode(): string | undefined {
  for (const path of ['/usr/bin/node', '/usr/local/bin/node']) {
    try {
      const major = Number(execFileSync(path, ['--version'], { encoding: 'utf8' }).slice(1).split('.')[0])
      if (major >= 20 && major < 24) return path
    } catch {
      // There is no Node at this path.
    }
  }
  return undefined
}

describe('client/README.md', { timeout: 60_000 }, () => {
  const h = harness()
  let url: string
  before(async () => {
    url = await listen(h.app)
  })

  async function checkLiveInbox(t: TestContext, node?: string): Promise<void> {
    const email = newEmail()
    const { child, next } = run(t, findCode('Sign in, and a live inbox'), { url, email }, node)
    assert.deepEqual(await next(), ['code?'])
    child.stdin!.write(`${await queuedCode(h, email)}\n`)
    assert.deepEqual(await next(), ['badge', 0])
    assert.deepEqual(await next(), ['list', 0])
    const [user] = await h.database.sql<{ id: number }>`select id from app_user where email = ${email}`
    await makeNotifications(h, user!.id, 1)
    assert.deepEqual(await next(), ['top', 'Partie complète'])
    assert.deepEqual(await next(), ['badge', 1])
  }

  test('the first example in client/README.md signs in and shows a live inbox', t => checkLiveInbox(t))

  const node = findOlderNode()
  const skip = !node && 'this machine has no Node 20, 21, 22 or 23'
  test('the first example in client/README.md runs on an installed Node that is older than Node 24', { skip }, t =>
    checkLiveInbox(t, node),
  )

  test('the example for the preferences in client/README.md changes the preferences', async t => {
    const { id, token } = await makeUser(h)
    const signIn = `import { Courtside, memoryStorage } from 'courtside-client'
      const storage = memoryStorage()
      storage.set('token', ${JSON.stringify(token)})
      const courtside = new Courtside({ url, storage })\n`
    const report = `\nsay('before')(types.game_joined.email, quiet_hours.to)`
    const { next } = run(t, signIn + findCode('Notification settings') + report, { url })
    assert.deepEqual(await next(), ['before', false, '08:00'])
    assert.deepEqual(await next(), ['exit', 0])
    const [row] = await h.database.sql<Record<string, unknown>>`
      select types, quiet_from, quiet_to from notification_preference where user_id = ${id}`
    const stored = { types: { game_joined: { email: true } }, quiet_from: '21:30', quiet_to: '07:00' }
    assert.deepEqual(row, stored)
  })

  test('the example for errors in client/README.md shows the error message of the service', async t => {
    const signIn = `import { Courtside } from 'courtside-client'
      const courtside = new Courtside({ url, language: 'en' })\n`
    const { next } = run(t, signIn + findCode('Errors'), { url, email: newEmail(), code: '1234' })
    assert.deepEqual(await next(), ['error', 'This code is wrong or has expired. Request a new code.'])
    assert.deepEqual(await next(), ['exit', 0])
  })

  test('the example for the reporter in client/README.md reports an event', async t => {
    // The example sends the real time as the time of its event. By the clock of the service, this time must not be in
    // the future. So the test sets the clock of the service to the real time.
    h.clock.set(new Date(performance.timeOrigin + performance.now()))
    const { id } = await makeUser(h)
    const script = `${findCode('Reporting events')}\nsay('result')(result)`
    const { next } = run(t, script, { url, key: INTAKE_KEY, creator_id: id })
    assert.deepEqual(await next(), ['result', { id: 'join-981', status: 'accepted', notifications: 1 }])
    assert.deepEqual(await next(), ['exit', 0])
  })

  test('client/README.md names every method of the client', async () => {
    const { Courtside } = await import('courtside-client')
    const client = new Courtside()
    const prototypes = [Courtside.prototype, client.notifications.constructor.prototype]
    const parts = [...prototypes, client.preferences, client.push]
    const methods = parts.flatMap(Object.getOwnPropertyNames).filter(name => name !== 'constructor')
    assert.ok(methods.length >= 15)
    for (const name of methods) assert.match(readme, new RegExp(`[\`.]${name}\\(`), name)
  })
})

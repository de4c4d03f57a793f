import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { before, describe, type TestContext, test } from 'node:test'
import { harness, INTAKE_KEY } from './support/app.ts'
import { ear } from './support/client.ts'
import { listen } from './support/event-stream.ts'
import { makeNotifications, makeUser } from './support/factories.ts'
import { newEmail, queuedCode } from './support/scenario.ts'

const ROOT = new URL('..', import.meta.url).pathname
const readme = await readFile(new URL('../client/README.md', import.meta.url), 'utf8')

/** The first piece of code under a heading. */
function codeOf(title: string): string {
  const section = readme.split(/^## /m).find(part => part.startsWith(`${title}\n`))
  const code = /```ts\n([\s\S]*?)```/.exec(section ?? '')?.[1]
  assert.ok(code, `client/README.md has no code under "${title}"`)
  return code
}

/** What the code leaves to its reader: it says each call as a line, and is told by lines. */
const GIVEN = `
const { createInterface } = await import('node:readline')
const { url, email, code, key, creator_id } = JSON.parse(process.env.GIVEN)
const say = what => (...values) => console.log(JSON.stringify([what, ...values]))
const askForTheCode = async () => {
  say('code?')()
  for await (const line of createInterface({ input: process.stdin })) return line
}
const [showBadge, showError, countDown] = [say('badge'), say('error'), say('count down')]
const addToTheTop = ({ title }) => say('top')(title)
const showList = list => say('list')(list.length)
`

/** Runs code as a program of its own, beside the package as it is installed. */
function run(t: TestContext, code: string, given: Record<string, unknown>, node = process.execPath) {
  const child = spawn(node, ['--input-type=module', '--eval', GIVEN + code], {
    cwd: ROOT,
    env: { GIVEN: JSON.stringify(given) },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  t.after(() => child.kill())
  const { hear, next } = ear<[what: string, ...values: any[]]>()
  createInterface(child.stdout).on('line', line => hear(JSON.parse(line)))
  child.on('exit', status => hear(['exit', status]))
  return { child: child as ChildProcess, next }
}

/** An older Node of the machine's, which the package promises to run on. */
function olderNode(): string | undefined {
  for (const path of ['/usr/bin/node', '/usr/local/bin/node']) {
    try {
      const major = Number(execFileSync(path, ['--version'], { encoding: 'utf8' }).slice(1).split('.')[0])
      if (major >= 20 && major < 24) return path
    } catch {
      // There is none at this place.
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

  async function signsInAndShowsALiveInbox(t: TestContext, node?: string): Promise<void> {
    const email = newEmail()
    const { child, next } = run(t, codeOf('Sign in, and a live inbox'), { url, email }, node)
    assert.deepEqual(await next(), ['code?'])
    child.stdin!.write(`${await queuedCode(h, email)}\n`)
    assert.deepEqual(await next(), ['badge', 0])
    assert.deepEqual(await next(), ['list', 0])
    const [user] = await h.database.sql<{ id: number }>`select id from app_user where email = ${email}`
    await makeNotifications(h, user!.id, 1)
    assert.deepEqual(await next(), ['top', 'Partie complète'])
    assert.deepEqual(await next(), ['badge', 1])
  }

  test('signs in and shows a live inbox', t => signsInAndShowsALiveInbox(t))

  const node = olderNode()
  test('on the oldest Node it promises too', { skip: !node && 'no Node 20 to 23 on this machine' }, t =>
    signsInAndShowsALiveInbox(t, node),
  )

  test('tells of failures', async t => {
    const signIn = `import { Courtside } from 'courtside-client'
      const courtside = new Courtside({ url, language: 'en' })\n`
    const { next } = run(t, signIn + codeOf('When it fails'), { url, email: newEmail(), code: '1234' })
    assert.deepEqual(await next(), ['error', 'This code is wrong or has expired.'])
    assert.deepEqual(await next(), ['exit', 0])
  })

  test('reports a fact', async t => {
    // The program's own clock is the real one, and a fact must not be of the future.
    h.clock.set(new Date(performance.timeOrigin + performance.now()))
    const { id } = await makeUser(h)
    const script = `${codeOf('Reporting facts')}\nsay('result')(result)`
    const { next } = run(t, script, { url, key: INTAKE_KEY, creator_id: id })
    assert.deepEqual(await next(), ['result', { id: 'join-981', status: 'accepted', notifications: 1 }])
    assert.deepEqual(await next(), ['exit', 0])
  })

  test('names every method of the client', async () => {
    const { Courtside } = await import('courtside-client')
    const client = new Courtside()
    for (const face of [Courtside, client.notifications.constructor]) {
      for (const name of Object.getOwnPropertyNames(face.prototype)) {
        if (name !== 'constructor') assert.match(readme, new RegExp(`[\`.]${name}\\(`), name)
      }
    }
  })
})

import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, before, describe, test } from 'node:test'
import { createTokens } from '../src/auth/jwt.ts'
import { deriveKeys } from '../src/keys.ts'
import { INTAKE_KEY, JWT_SECRET, settingsFor } from './support/app.ts'
import { type TestDatabase, testDatabase } from './support/database.ts'
import { type Service, startService } from './support/service.ts'
import { type SmtpServer, smtpServer } from './support/smtp.ts'
import { startUnreliableProxy } from './support/unreliable-proxy.ts'

const EXAMPLES = [
  { name: 'curl', needs: 'curl', run: 'bash', signIn: 'curl/sign-in.sh', report: 'curl/report.sh' },
  {
    name: 'node',
    needs: process.execPath,
    run: process.execPath,
    signIn: 'node/sign-in.mjs',
    report: 'node/report.mjs',
  },
  { name: 'python', needs: 'python3', run: 'python3', signIn: 'python/sign_in.py', report: 'python/report.py' },
  { name: 'php', needs: 'php', run: 'php', signIn: 'php/sign-in.php', report: 'php/report.php' },
]

// The quotation marks and the backslash in these names make JSON invalid, unless the example program escapes them.
const FIRST_NAME = 'Zoé "Z"'
const LAST_NAME = 'de\\la Tour'

// A player without an account.
const GUEST = 2 ** 52 + 1

let database: TestDatabase
let smtp: SmtpServer
let service: Service
let folder: string
let proxy: Awaited<ReturnType<typeof startUnreliableProxy>>

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'courtside-examples-'))
  database = await testDatabase()
  smtp = await smtpServer()
  service = await startService({
    ...settingsFor(database.url, smtp.url),
    THROTTLE_REQUEST_OTP: '1000',
    THROTTLE_VERIFY_OTP: '1000',
  })
  proxy = await startUnreliableProxy(service.address)
})
after(async () => {
  proxy.server.close()
  assert.equal(await service.stop(), 0)
  await smtp.close()
  await database.drop()
  await rm(folder, { recursive: true })
})

for (const { name, needs, run, signIn, report } of EXAMPLES) {
  const found = spawnSync(needs, ['--version']).status === 0
  // If a program is missing, the tests of its example are skipped. In CI these tests fail, because CI must install
  // every program.
  const skip = !found && !process.env.CI && `${needs} is not installed`

  describe(`examples/${name}`, { skip, timeout: 120_000 }, () => {
    const email = `zoe-${name}@example.com`
    const tokenFile = () => join(folder, `${name}-token`)
    const newestToken = async () => (await readFile(tokenFile(), 'utf8')).trim()
    const start = (...args: string[]) =>
      startProgram(run, signIn, args, { COURTSIDE_URL: service.address, COURTSIDE_TOKEN_FILE: tokenFile() })
    let userId: number
    let sessionId: string

    test(`the ${name} sign-in program signs a user up with the typed code and makes the token file private`, async () => {
      const program = start(email, FIRST_NAME, LAST_NAME)
      await program.type(waitForCode(email, 1))
      const { code, output, errors } = await program.ended
      assert.equal(code, 0, errors)
      assert.match(output, /Zoé/)
      const [user] = await database.sql<{ id: number; first_name: string; last_name: string }>`
        select id, first_name, last_name from app_user where email = ${email}`
      assert.deepEqual([user!.first_name, user!.last_name], [FIRST_NAME, LAST_NAME])
      userId = user!.id
      assert.equal((await stat(tokenFile())).mode & 0o777, 0o600)
    })

    test(`if an answer is lost, the ${name} report program sends the same bytes again, and gets the status duplicate`, async () => {
      proxy.reset()
      const env = { COURTSIDE_URL: proxy.address, COURTSIDE_INTAKE_KEY: INTAKE_KEY }
      // The second player is a guest, so only Zoé gets a notification.
      const args = [userId, userId, GUEST].map(String)
      const { code, output, errors } = await startProgram(run, report, args, env).ended
      assert.equal(code, 0, errors)
      assert.match(output, /duplicate/)
      assert.equal(output.match(/accepted/g)?.length, 2)
      assert.equal(proxy.bodies.length, 4)
      assert.equal(new Set(proxy.bodies.slice(0, 3)).size, 1)
      const notifications = await database.sql`select type from notification where user_id = ${userId}`
      assert.deepEqual(notifications, [{ type: 'game_joined' }])
    })

    test(`the ${name} report program shows why events are refused, and does not send refused events again`, async () => {
      proxy.reset({ isReliable: true })
      const env = { COURTSIDE_URL: proxy.address, COURTSIDE_INTAKE_KEY: INTAKE_KEY }
      const { code, output } = await startProgram(run, report, [String(userId), '0', String(GUEST)], env).ended
      assert.equal(code, 1)
      assert.match(output, /data\.creator_id/)
      assert.equal(output.match(/rejected/g)?.length, name === 'curl' ? 2 : 3)
      assert.equal(proxy.bodies.length, 2)
    })

    test(`if the clock of the service is behind, the ${name} report program sends the same bytes again until they are accepted`, async () => {
      proxy.reset({ isAhead: true })
      const env = { COURTSIDE_URL: proxy.address, COURTSIDE_INTAKE_KEY: INTAKE_KEY }
      const args = [userId + 1_000_000, userId, GUEST].map(String)
      const { code, output, errors } = await startProgram(run, report, args, env).ended
      assert.equal(code, 0, output + errors)
      assert.equal(proxy.bodies.length, 4)
      assert.equal(new Set(proxy.bodies).size, 2)
      assert.doesNotMatch(output, /rejected/)
    })

    test(`the ${name} sign-in program refreshes an expired token and repeats the request`, async () => {
      const { expired, sid } = await expireToken(await newestToken())
      sessionId = sid
      await writeFile(tokenFile(), `${expired}\n`)
      const { code, output, errors } = await start(email).ended
      assert.equal(code, 0, errors)
      assert.match(output, /Un joueur a rejoint la partie/)
      const me = await ask('GET', '/api/v1/auth/me', await newestToken())
      assert.equal(me.status, 200)
    })

    test(`after a logout the ${name} sign-in program shows the wait before the next code, and then gets a code as a known client`, async () => {
      assert.equal((await ask('POST', '/api/v1/auth/logout', await newestToken())).status, 200)
      const setSent = (at: string) => database.sql`
        update session set code_sent_at = ${at}::timestamptz where id = ${sessionId}::uuid`
      await setSent('now')
      const early = await start(email).ended
      assert.equal(early.code, 1)
      assert.match(early.errors, /429.*\n?.*(again in|retry-after:) \d+/i)

      await setSent('epoch')
      const program = start(email)
      const typed = waitForCode(email, 2)
      await Promise.race([typed, program.ended])
      const [newest] = await database.sql`
        select session_id from sign_in_code where email = ${email} order by sent_at desc limit 1`
      assert.deepEqual(newest, { session_id: sessionId })
      await program.type(typed)
      const { code, output, errors } = await program.ended
      assert.equal(code, 0, errors)
      assert.match(output, /Un joueur a rejoint la partie/)
    })
  })
}

function startProgram(run: string, file: string, args: string[], env: Record<string, string>) {
  const { PATH, HOME } = process.env
  const child = spawn(run, [new URL(`../examples/${file}`, import.meta.url).pathname, ...args], {
    env: { PATH, HOME, ...env } as NodeJS.ProcessEnv,
  })
  const ended = Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]).then(
    ([output, errors, [code]]) => ({ code: code as number, output, errors }),
  )
  // If the program ends before it has requested a code, no mail arrives. `type` must then fail instead of waiting for
  // the mail.
  const failed = ended.then(({ errors }) => Promise.reject(new Error(`${file} ended early: ${errors}`)))
  failed.catch(() => {})
  return {
    ended,
    async type(line: Promise<string>): Promise<void> {
      child.stdin.end(`${await Promise.race([line, failed])}\n`)
    },
  }
}

function ask(method: string, path: string, token: string): Promise<Response> {
  return fetch(service.address + path, { method, headers: { authorization: `Bearer ${token}` } })
}

/** Waits until the address has received `mails` mails. @returns the code in the last mail */
async function waitForCode(email: string, mails: number): Promise<string> {
  const received = () => smtp.mails.filter(mail => mail.to.includes(email))
  await smtp.until(() => received().length === mails)
  return /^\d{4}$/m.exec(received().at(-1)!.parsed.text!)![0]
}

/** Moves the session of a token two hours into the past. @returns an expired token of the session, and its id */
async function expireToken(token: string) {
  const { sub, sid } = JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString())
  const [session] = await database.sql<{ issued_at: Date; generation: number }>`
    update session set issued_at = issued_at - interval '2 hours' where id = ${sid} returning issued_at, generation`
  const iat = Math.floor(session!.issued_at.getTime() / 1000)
  const claims = { sub: Number(sub), sid, generation: session!.generation, iat, nbf: iat, exp: iat + 3600 }
  return { expired: createTokens(deriveKeys([JWT_SECRET])).sign(claims), sid: sid as string }
}

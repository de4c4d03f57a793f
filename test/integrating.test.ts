import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { CODES } from '../src/errors.ts'
import { EVENT_TYPES } from '../src/games/schema.ts'
import { readMailbox, type Service, startService } from './support/service.ts'

const root = new URL('..', import.meta.url).pathname
const guide = await readFile(join(root, 'docs/integrating.md'), 'utf8')
const commands = [...guide.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block]) => block!)
const live = commands.filter(block => block.includes('curl -sN'))

describe('docs/integrating.md', { timeout: 60_000 }, () => {
  let folder: string
  let service: Service
  let token: string

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'courtside-integrating-'))
    service = await startService({ DATA_DIR: join(folder, 'data') })
    token = await signUp(service)
  })
  after(async () => {
    assert.equal(await service.stop(), 0)
    await rm(folder, { recursive: true })
  })

  /**
   * Creates the program, arguments and options with which a test runs commands of the guide in bash. The address of the
   * test's service replaces the address in the commands.
   */
  function createShell(blocks: string[]): [string, string[], { cwd: string; env: NodeJS.ProcessEnv }] {
    const script = ['set -e', ...blocks].join('\n').replaceAll('http://127.0.0.1:3000', service.address)
    return ['bash', ['-c', script], { cwd: folder, env: { ...process.env, TOKEN: token, ME: '1' } }]
  }

  test('the commands in docs/integrating.md print the documented lines if one shell runs all commands', async () => {
    const { stdout } = await promisify(execFile)(...createShell(commands.filter(block => !live.includes(block))))
    const lines = stdout.split('\n')
    const documented = [...guide.matchAll(/```json\n(.*)\n```/g)].map(([, line]) => line)
    assert.equal(documented.length, 4)
    assert.deepEqual(lines.slice(0, 4), documented)
    const { results } = JSON.parse(lines[4]!)
    assert.deepEqual(
      results.map(({ id, status }: { id: string; status: string }) => [id, status]),
      [
        ['join-981', 'duplicate'],
        ['join-982', 'accepted'],
        ['join-983', 'rejected'],
      ],
    )
    const [me, page, unread, read] = lines[5]!.split(/(?<=\})(?=\{)/).map(text => JSON.parse(text))
    assert.equal(me.data.id, 1)
    assert.deepEqual([page.data.length, page.meta.total, unread.unread_count, read.count], [1, 2, 2, 2])
  })

  test('the stream in docs/integrating.md begins with the documented sync event', async () => {
    const [program, args, options] = createShell([commands[0]!, ...live.map(block => `exec ${block}`)])
    // If the sync event never comes, the timeout kills curl after 30 s, and the loop ends.
    const curl = spawn(program, args, { ...options, timeout: 30_000 })
    let output = ''
    for await (const chunk of curl.stdout) {
      output += chunk
      if (output.includes('latest_id')) break
    }
    curl.kill()
    assert.match(output, /event: sync\ndata: \{"unread_count":\d+,"latest_id":\d+\}/)
  })

  test('docs/integrating.md lists every event type and every error code', () => {
    assert.ok(EVENT_TYPES.length >= 12 && CODES.length >= 13)
    for (const type of EVENT_TYPES) assert.ok(guide.includes(`| \`${type}\` |`), type)
    for (const code of CODES) assert.ok(guide.includes(`\`${code}\``), code)
  })
})

/** Signs up the first user, who gets the id 1. @returns the user's token */
async function signUp(service: Service): Promise<string> {
  const { address } = service
  const email = 'marie@example.com'
  await post(`${address}/api/v1/auth/request-otp`, { email, first_name: 'Marie', last_name: 'D', accept_cgu: true })
  for (const deadline = performance.now() + 30_000; performance.now() < deadline; ) {
    const code = /^\d{4}$/m.exec((await readMailbox(service))[0]?.text ?? '')?.[0]
    if (code) return (await post(`${address}/api/v1/auth/verify-otp`, { email, code })).access_token
  }
  throw new Error('no code arrived in the mailbox within 30 s')
}

async function post(url: string, body: unknown): Promise<any> {
  const headers = { 'content-type': 'application/json' }
  return (await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })).json()
}

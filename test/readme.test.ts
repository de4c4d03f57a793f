import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { promisify } from 'node:util'
import { updateSettings } from '../scripts/readme-settings.ts'
import { SETTINGS } from '../src/settings.ts'
import { startService } from './support/service.ts'

const readme = await readFile(new URL('../README.md', import.meta.url), 'utf8')

function section(title: string): string {
  const body = readme.split(/^## /m).find(part => part.startsWith(`${title}\n`))
  assert.ok(body, `README.md has no section "${title}"`)
  return body
}

describe('README.md', () => {
  test('the curl commands of the README, run in one shell on a new database, give the described answers', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'courtside-readme-'))
    const service = await startService({ DATA_DIR: join(folder, 'data') })
    try {
      const blocks = [...section('Five minutes with curl').matchAll(/```sh\n([\s\S]*?)```/g)].map(
        ([, commands]) => commands!,
      )
      assert.equal(blocks.length, 4)
      // The test replaces port 3000 of the README, because another program may use this port. The loop in `mailed`
      // waits until the mail has arrived.
      const mailed =
        'for _ in {1..300}; do curl -s "http://127.0.0.1:3000/dev/mailbox.json?key=$(cat data/mailbox-key)" | grep -q marie && break; sleep 0.1; done'
      const shell = ['set -e', blocks[0], mailed, ...blocks.slice(1)]
        .join('\n')
        .replaceAll('http://127.0.0.1:3000', service.address)
      const { stdout } = await promisify(execFile)('bash', ['-c', shell], { cwd: folder })
      assert.match(stdout, /"email":"marie@example.com","first_name":"Marie"/)
      assert.match(stdout, /\{"id":"1","status":"accepted","notifications":1\}/)
      assert.match(
        stdout,
        /"message":"Un joueur a rejoint la partie du samedi 19\sjanvier 2030 à 18\sh\s00 \(2\/4\)\."/,
      )
    } finally {
      await service.stop()
      await rm(folder, { recursive: true, force: true })
    }
  })

  test('the table of settings in the README matches the code', () => {
    assert.equal(readme, updateSettings(readme), 'update the table of README.md: npm run generate')
    for (const name of Object.keys(SETTINGS)) assert.ok(readme.includes(`\n| \`${name}\` | `), name)
  })
})

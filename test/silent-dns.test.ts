import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'

const SILENT_SERVER = '127.0.0.9'

const canUnshare = spawnSync('unshare', ['--net', '--mount', 'ip', 'link', 'set', 'lo', 'up']).status === 0

test('a process that looks up a name at a silent DNS server exits within 12 s after SIGTERM', {
  skip: !canUnshare && 'this system does not permit separate networks',
  timeout: 120_000,
}, async t => {
  const folder = await mkdtemp(join(tmpdir(), 'courtside-silent-dns-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  await chmod(folder, 0o755)
  // With a domain to search, the C library asks for two names, and by default waits for 20 s.
  await writeFile(join(folder, 'resolv.conf'), `nameserver ${SILENT_SERVER}\nsearch club.example\n`)
  const script = `ip link set lo up && mount --bind ${join(folder, 'resolv.conf')} /etc/resolv.conf && exec "$@"`
  const run = spawnSync(
    'unshare',
    [
      ...['--net', '--mount', '--kill-child', 'sh', '-c', script, 'sh'],
      ...[process.execPath, new URL('support/silent-dns.ts', import.meta.url).pathname, join(folder, 'data')],
    ],
    { encoding: 'utf8' },
  )
  assert.equal(run.status, 0, run.stderr)
  const { code, seconds } = JSON.parse(run.stdout)
  assert.equal(code, 0)
  assert.ok(seconds < 12, `${seconds} s`)
})

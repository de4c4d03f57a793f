// A log that cannot be written must not stop the service. These tests use real pipes, disks and processes.
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { countDroppedLines, LogWriter } from '../src/log-writer.ts'
import { settingsFor } from './support/app.ts'
import { testDatabase } from './support/database.ts'
import { findFreePort } from './support/reverse-proxies.ts'
import { smtpServer } from './support/smtp.ts'
import { waitUntil } from './support/wait-until.ts'

const PROGRAM = new URL('../bin/courtside.js', import.meta.url).pathname
const METRICS_TOKEN = 'Vw8kQz3nRt6yBp1s'
const LINE = `${'x'.repeat(1023)}\n`

/** Opens a new pipe for writing. `reader` keeps the pipe open and reads nothing. */
function openPipe(folder: string) {
  const path = join(folder, `pipe-${Math.random()}`)
  execFileSync('mkfifo', [path])
  // On Linux, O_RDWR opens a pipe without waiting for the other end.
  const reader = openSync(path, constants.O_RDWR | constants.O_NONBLOCK)
  const writer = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK)
  return { path, reader, writer }
}

describe('a log writer', () => {
  test('lines that do not fit into memory are dropped and counted, and the others arrive in order', async t => {
    const folder = mkdtempSync(join(tmpdir(), 'courtside-log-'))
    t.after(() => rmSync(folder, { recursive: true }))
    const { path, reader, writer } = openPipe(folder)
    const recovered: number[] = []
    const log = new LogWriter(writer, dropped => recovered.push(dropped))
    const before = countDroppedLines()
    for (let line = 0; line < 8_192; line += 1) log.write(`${String(line).padStart(1023)}\n`)
    const dropped = countDroppedLines() - before
    assert.ok(dropped > 0)

    const cat = spawn('cat', [path], { stdio: ['ignore', 'pipe', 'inherit'] })
    t.after(() => cat.kill())
    let output = ''
    cat.stdout.setEncoding('utf8').on('data', chunk => {
      output += chunk
    })
    const kept = 8_192 - dropped
    await waitUntil(() => output.length === kept * 1024)
    const numbers = output.trimEnd().split('\n').map(Number)
    assert.deepEqual(numbers, [...Array(kept).keys()])
    await waitUntil(() => recovered.length > 0)
    assert.deepEqual(recovered, [dropped])
    closeSync(reader)
    closeSync(writer)
  })

  test('lines that were written on a full disk appear after the disk has room again', async t => {
    const folder = mkdtempSync(join(tmpdir(), 'courtside-log-'))
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', folder], { stdio: 'ignore' })
    } catch {
      rmSync(folder, { recursive: true })
      return t.skip('mounting a small file system requires root')
    }
    t.after(() => {
      execFileSync('umount', ['-l', folder])
      rmSync(folder, { recursive: true })
    })
    const filler = join(folder, 'filler')
    writeFileSync(filler, 'x'.repeat(60_000))
    const path = join(folder, 'log')
    const fd = openSync(path, 'a')
    const log = new LogWriter(fd, () => {})
    for (let line = 0; line < 40; line += 1) log.write(LINE)
    // The first lines fit, and the disk is full after them.
    await waitUntil(() => readFileSync(path).length > 0)
    rmSync(filler)
    await waitUntil(() => readFileSync(path, 'utf8') === LINE.repeat(40))
    closeSync(fd)
  })
})

describe('a service whose log cannot be written', () => {
  const outputs: [name: string, open: (folder: string) => number][] = [
    ['goes to a full device', () => openSync('/dev/full', 'w')],
    ['goes to a pipe whose reader has stalled', folder => openPipe(folder).writer],
    [
      'goes to a pipe whose reader is gone',
      folder => {
        const { reader, writer } = openPipe(folder)
        closeSync(reader)
        return writer
      },
    ],
  ]
  for (const [name, open] of outputs) {
    test(`a service whose log ${name} answers requests and ends after SIGTERM`, { timeout: 60_000 }, async t => {
      const folder = mkdtempSync(join(tmpdir(), 'courtside-log-'))
      const [database, smtp, port] = [await testDatabase(), await smtpServer(), await findFreePort()]
      const { PATH, HOME } = process.env
      const child = spawn(process.execPath, [PROGRAM, 'serve'], {
        env: { PATH, HOME, ...settingsFor(database.url, smtp.url), PORT: String(port), METRICS_TOKEN },
        stdio: ['ignore', open(folder), 'inherit'],
      })
      t.after(async () => {
        child.kill('SIGKILL')
        await smtp.close()
        await database.drop()
        rmSync(folder, { recursive: true })
      })
      const get = (path: string) => fetch(`http://127.0.0.1:${port}${path}`, { signal: AbortSignal.timeout(5_000) })
      await waitUntil(async () => (await get('/readyz').catch(() => undefined))?.status === 200)
      // Each request writes a line of about 170 bytes. So these lines are longer than the buffer of a pipe.
      for (let batch = 0; batch < 20; batch += 1) {
        const answers = await Promise.all(Array.from({ length: 50 }, () => get('/api/v1/game-levels')))
        for (const answer of answers) assert.equal(answer.status, 200)
        await Promise.all(answers.map(answer => answer.arrayBuffer()))
      }
      assert.equal((await get('/healthz')).status, 200)
      const headers = { authorization: `Bearer ${METRICS_TOKEN}` }
      const metrics = await fetch(`http://127.0.0.1:${port}/metrics`, { headers })
      assert.match(await metrics.text(), /^courtside_log_lines_dropped_total 0$/m)
      child.kill('SIGTERM')
      const [code] = await once(child, 'exit')
      assert.equal(code, 0)
    })
  }
})

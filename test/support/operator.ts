import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before } from 'node:test'
import { settingsFor } from './app.ts'
import type { TestDatabase } from './database.ts'
import { courtside } from './service.ts'

/**
 * Returns functions for operator commands. The functions run commands on the database of a test file, and write input
 * files to a temporary folder.
 */
export function operatorCommands(h: { database: TestDatabase }) {
  let folder: string
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'courtside-operator-'))
  })
  after(() => rm(folder, { recursive: true, force: true }))

  const runCommand = (...args: string[]) => courtside(args, settingsFor(h.database.url))
  return {
    runCommand,
    /** Runs a command with `--json`. @returns the parsed output */
    async runJson(...args: string[]) {
      const { code, output, errors } = await runCommand(...args, '--json')
      assert.equal(code, 0, errors)
      return JSON.parse(output)
    },
    /** Writes an input file. @returns the path of the file */
    async writeInput(name: string, content: unknown): Promise<string> {
      const path = join(folder, name)
      await writeFile(path, typeof content === 'string' ? content : JSON.stringify(content))
      return path
    },
  }
}

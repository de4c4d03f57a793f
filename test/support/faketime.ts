import assert from 'node:assert/strict'
import { globSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { findEmbeddedPrograms } from '../../src/embedded/programs.ts'
import { startThrowAway } from '../../src/embedded/throw-away.ts'

const [libfaketime] = globSync('/usr/lib/*/faketime/libfaketime.so.1')

/** The reason to skip a test that needs libfaketime, or false. */
export const skipWithoutFaketime =
  !libfaketime && !process.env.CI && 'libfaketime is not installed (apt-get install libfaketime)'

/** A clock that processes see instead of the clock of the machine. */
export type FakeClock = {
  /** The environment variables of a process that sees this clock. */
  env: Record<string, string>
  /** Moves the clock. @param offset the difference from the real time, such as `+61m` */
  moveTo(offset: string): Promise<void>
  /** Starts a PostgreSQL server that sees this clock. */
  startPostgres(): Promise<{ url: string; stop(): Promise<void> }>
  remove(): Promise<void>
}

export async function fakeClock(offset = '+0'): Promise<FakeClock> {
  assert.ok(libfaketime, 'CI needs libfaketime (apt-get install libfaketime)')
  const folder = await mkdtemp(join(tmpdir(), 'courtside-clock-'))
  await chmod(folder, 0o755)
  const moveTo = async (newOffset: string) => {
    // libfaketime reads the file `clock` whenever a process asks for the time. A rename replaces the file atomically,
    // so libfaketime never reads a half-written file.
    await writeFile(join(folder, 'next'), newOffset, { mode: 0o644 })
    await rename(join(folder, 'next'), join(folder, 'clock'))
  }
  await moveTo(offset)
  const env = {
    LD_PRELOAD: libfaketime,
    FAKETIME_TIMESTAMP_FILE: join(folder, 'clock'),
    FAKETIME_NO_CACHE: '1',
    // Without this setting, every timer would fire immediately when the clock moves.
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
  }
  return {
    env,
    moveTo,
    startPostgres: async () => {
      const bin = await wrapPrograms(join(folder, 'bin'), env)
      return startThrowAway(join(folder, 'data'), pino({ level: 'error' }), { bin })
    },
    remove: () => rm(folder, { recursive: true }),
  }
}

/** Writes scripts that run the programs of PostgreSQL with environment variables. @returns the folder of the scripts */
async function wrapPrograms(folder: string, env: Record<string, string>): Promise<string> {
  const bin = process.env.TEST_PG_BIN ?? findEmbeddedPrograms()
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`)
  await mkdir(folder, { mode: 0o755 })
  for (const name of ['initdb', 'pg_ctl', 'postgres']) {
    const prefix = name === 'postgres' ? `env ${variables.join(' ')} ` : ''
    await writeFile(join(folder, name), `#!/bin/sh\nexec ${prefix}${join(bin, name)} "$@"\n`, { mode: 0o755 })
  }
  return folder
}

import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmod,
  chown,
  lchown,
  link,
  lstat,
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, beforeEach, describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { pino } from 'pino'
import { prepareDataFolder } from '../src/data-folder.ts'
import { readPassword } from '../src/embedded/access.ts'
import { createCluster, replaceFile } from '../src/embedded/cluster.ts'
import { requireNoEarlierService } from '../src/embedded/earlier-service.ts'
import { removeFile, removeFolder } from '../src/embedded/foreign-folder.ts'
import { giveFolder } from '../src/embedded/give-folder.ts'
import { rotateLog } from '../src/embedded/launch.ts'
import { findPostmaster } from '../src/embedded/postmaster.ts'
import { readClusterFile } from '../src/embedded/read-cluster-file.ts'
import { prepareSocketFolder } from '../src/embedded/socket.ts'
import { readSecret } from '../src/secrets.ts'

const ROOT = 0
const STRANGER = 54_321
const STRANGER_ACCOUNT = { wrapper: [], uid: STRANGER, gid: STRANGER }
const LONG_LOG = 'x'.repeat(5_000_000)

describe('files of another user in the data folder', {
  skip: process.getuid?.() !== ROOT && 'only root can create files of another user',
}, () => {
  const folders: string[] = []
  let data: string
  let victim: string
  let victimFile: string

  beforeEach(async () => {
    data = await mkdtemp(join(tmpdir(), 'courtside-links-'))
    victim = await mkdtemp(join(tmpdir(), 'courtside-victim-'))
    victimFile = join(victim, 'inner/file')
    await mkdir(join(victim, 'inner'))
    await writeFile(victimFile, 'untouched', { mode: 0o644 })
    folders.push(data, victim)
  })
  after(() => Promise.all(folders.map(folder => rm(folder, { recursive: true, force: true }))))

  async function requireUntouched() {
    for (const path of [victim, join(victim, 'inner'), victimFile]) assert.equal((await stat(path)).uid, ROOT, path)
    assert.equal((await stat(victim)).mode & 0o777, 0o700)
    assert.equal((await stat(victimFile)).mode & 0o777, 0o644)
    assert.equal(await readFile(victimFile, 'utf8'), 'untouched')
  }

  for (const linkOwner of [ROOT, STRANGER]) {
    test(`root does not change the owner of a file that a link in the cluster leads to; user ${linkOwner} owns the link`, async () => {
      const cluster = join(data, 'postgres')
      await mkdir(join(cluster, 'base'), { recursive: true })
      await writeFile(join(cluster, 'base/1'), '')
      for (const name of ['PG_VERSION', 'x', 'base/x']) {
        await symlink(victim, join(cluster, name))
        await lchown(join(cluster, name), linkOwner, linkOwner)
      }
      await symlink(victimFile, join(cluster, 'file'))
      await link(victimFile, join(cluster, 'base/hard'))
      await giveFolder(STRANGER_ACCOUNT, cluster)
      for (const name of ['', 'base', 'base/1']) assert.equal((await lstat(join(cluster, name))).uid, STRANGER, name)
      await requireUntouched()
    })
  }

  test('root changes no owner behind a link that takes the place of an open folder', async () => {
    const [cluster, folder, toVictim] = [join(data, 'postgres'), join(data, 'postgres/base'), join(data, 'link')]
    await mkdir(join(folder, 'inner'), { recursive: true })
    for (let count = 0; count < 50; count += 1) await writeFile(join(folder, `${count}`), '')
    await symlink(victim, toVictim)
    const worker = new Worker(SWAP_FOLDER_AND_LINK, { eval: true, workerData: { folder, link: toVictim } })
    worker.unref()
    for (let round = 0; round < 500; round += 1) {
      await chown(cluster, ROOT, ROOT)
      await giveFolder(STRANGER_ACCOUNT, cluster)
    }
    await worker.terminate()
    await requireUntouched()
  })

  test('a named pipe in the cluster does not stop root', async t => {
    const [cluster, pipe] = [join(data, 'postgres'), join(data, 'postgres/pipe')]
    await mkdir(cluster)
    execFileSync('mkfifo', [pipe])
    // A thread that waits for the other side of the pipe continues when this side is opened.
    t.after(async () => (await open(pipe, 'r+')).close())
    await Promise.race([giveFolder(STRANGER_ACCOUNT, cluster), delay(10_000, undefined, { ref: false })])
    assert.equal((await stat(cluster)).uid, STRANGER)
  })

  test('a link that initdb leaves in the place of the cluster is refused and removed', async () => {
    const initdb = join(data, 'initdb')
    await writeFile(initdb, `#!/bin/sh\nln -s ${victim} "$2"\n`, { mode: 0o755 })
    const cluster = join(data, 'postgres')
    const programs = { bin: data, major: 18, account: { wrapper: [] } }
    const log = pino({ level: 'silent' })
    await assert.rejects(
      createCluster(programs, cluster, log, () => {}),
      /initdb has created no folder/,
    )
    assert.deepEqual(await readdir(data), ['initdb'])
    await requireUntouched()
  })

  test('root refuses a data folder that another user can change, and a link of another user to it or in it', async () => {
    const inside = join(data, 'postgres')
    await symlink(victim, inside)
    await lchown(inside, STRANGER, STRANGER)
    await assert.rejects(
      prepareDataFolder(data),
      /^Error: DATA_DIR: .*postgres is a symbolic link of the user id 54321/,
    )
    await rm(inside)
    await chmod(data, 0o777)
    await assert.rejects(prepareDataFolder(data), /^Error: DATA_DIR: users other than the owner may write to/)
    await chown(data, STRANGER, STRANGER)
    await assert.rejects(prepareDataFolder(data), /^Error: DATA_DIR: .* belongs to the user id 54321/)
    const toVictim = `${data}-link`
    folders.push(toVictim)
    await symlink(victim, toVictim)
    assert.equal(await prepareDataFolder(toVictim), toVictim)
    await lchown(toVictim, STRANGER, STRANGER)
    await assert.rejects(prepareDataFolder(toVictim), /-link is a symbolic link of the user id 54321/)
    await requireUntouched()
  })

  test('the rotation of a log writes through no link', async () => {
    const log = join(data, 'postgres.log')
    await writeFile(log, LONG_LOG)
    await symlink(victimFile, `${log}.1`)
    await rotateLog(log)
    assert.equal(await readFile(`${log}.1`, 'utf8'), LONG_LOG)
    assert.equal((await stat(log)).size, 0)
    await rm(log)
    await writeFile(join(data, 'other'), LONG_LOG)
    await symlink(join(data, 'other'), log)
    await rotateLog(log)
    assert.equal((await stat(join(data, 'other'))).size, LONG_LOG.length)
    await requireUntouched()
  })

  test('a secret that is a link is refused, and the mode of the other file stays', async () => {
    await symlink(victimFile, join(data, 'jwt-secret'))
    await assert.rejects(
      readSecret(data, 'jwt-secret', () => {}),
      /jwt-secret is a symbolic link, but it must be a file/,
    )
    await requireUntouched()
  })

  test('root reads no file in the cluster through a link, and a pipe does not stop it', async () => {
    await writeFile(victimFile, '1'.repeat(43))
    for (const name of ['PG_VERSION', 'postmaster.pid', 'service-password', 'courtside-password'])
      await symlink(victimFile, join(data, name))
    await assert.rejects(readClusterFile(data, 'PG_VERSION'), { code: 'ELOOP' })
    await assert.rejects(readPassword(data), /service-password cannot be read: ELOOP/)
    assert.equal(await findPostmaster(data), undefined)
    await requireNoEarlierService(data)
    const programs = { bin: '', major: 18, account: { wrapper: [], uid: ROOT, gid: ROOT } }
    // Through the link, the message of the error would show the other file as the version of PostgreSQL.
    await createCluster(programs, data, pino({ enabled: false }), () => {})
    await rm(join(data, 'postmaster.pid'))
    execFileSync('mkfifo', [join(data, 'postmaster.pid')])
    assert.equal(await findPostmaster(data), undefined)
    await writeFile(victimFile, 'untouched')
    await requireUntouched()
  })

  test('a file in the cluster replaces a link and gets the owner of the cluster', async () => {
    await chown(data, STRANGER, STRANGER)
    await symlink(victimFile, join(data, 'pg_hba.conf'))
    await replaceFile(data, 'pg_hba.conf', 'rules')
    const { uid, mode } = await lstat(join(data, 'pg_hba.conf'))
    assert.deepEqual([uid, mode & 0o777], [STRANGER, 0o600])
    assert.equal(await readFile(join(data, 'pg_hba.conf'), 'utf8'), 'rules')
    await requireUntouched()
  })

  test('a draft of another user is removed with the rights of this user, so the files of root in it stay', async () => {
    const draft = join(data, 'postgres-draft-1')
    for (const name of ['cluster/base', '.hidden', '..more', '-rf']) {
      await mkdir(join(draft, name), { recursive: true })
      await writeFile(join(draft, name, 'a\nb'), '')
    }
    await symlink(victim, join(draft, 'cluster/link'))
    await giveFolder(STRANGER_ACCOUNT, draft)
    await mkdir(join(draft, 'of-root/inner'), { recursive: true })
    await removeFolder(draft)
    assert.deepEqual(await readdir(draft, { recursive: true }), ['of-root', 'of-root/inner'])
    await requireUntouched()
    await rm(join(draft, 'of-root'), { recursive: true })
    await removeFolder(draft)
    assert.deepEqual(await readdir(data), [])
  })

  test('the removal of a file never empties a folder that takes its place meanwhile', async () => {
    const path = join(data, 'file')
    const folder = join(data, 'folder')
    await mkdir(join(folder, 'inner'), { recursive: true })
    const worker = new Worker(SWAP_FILE_AND_FOLDER, { eval: true, workerData: { path, folder } })
    worker.unref()
    let removals = 0
    for (let round = 0; round < 20_000; round += 1) {
      await removeFile(path).then(
        () => (removals += 1),
        error => assert.equal(error.code, 'EISDIR'),
      )
    }
    await worker.terminate()
    assert.ok(removals > 0)
    assert.deepEqual(await readdir((await exists(folder)) ? folder : path), ['inner'])
  })

  test('a start succeeds although another user has made a folder in the folder of the socket', async () => {
    await mkdir(join(data, 'socket/folder'), { recursive: true })
    await chown(join(data, 'socket'), STRANGER, STRANGER)
    await chown(join(data, 'socket/folder'), STRANGER, STRANGER)
    await prepareSocketFolder(data, STRANGER_ACCOUNT)
    assert.deepEqual(await readdir(data, { recursive: true }), ['socket'])
    const { uid, mode } = await stat(join(data, 'socket'))
    assert.deepEqual([uid, mode & 0o777], [STRANGER, 0o700])
  })

  test('a process of another user never counts as the server of a cluster, even if the lock file names it', async () => {
    await chown(data, STRANGER, STRANGER)
    for (const uid of [ROOT, STRANGER]) {
      const program = spawn('/bin/sh', ['-c', 'echo started; read line', '-D', '-e'], { uid, gid: uid })
      await once(program.stdout, 'data')
      await writeFile(join(data, 'postmaster.pid'), `${program.pid}\n-e\n1\n5432\n../socket\n\n\nready\n`)
      const found = await findPostmaster(data)
      program.kill()
      assert.equal(found?.pid, uid === STRANGER ? program.pid : undefined)
    }
  })
})

/** Puts a folder and a link at the same path in turns, without pause. */
const SWAP_FOLDER_AND_LINK = `
  const { renameSync } = require('node:fs')
  const { folder, link } = require('node:worker_threads').workerData
  for (;;) {
    renameSync(folder, folder + '-away')
    renameSync(link, folder)
    renameSync(folder, link)
    renameSync(folder + '-away', folder)
  }`

/** Puts a file and a folder at the same path in turns, without pause. */
const SWAP_FILE_AND_FOLDER = `
  const { renameSync, writeFileSync } = require('node:fs')
  const { path, folder } = require('node:worker_threads').workerData
  for (;;) {
    writeFileSync(path, '')
    try {
      renameSync(path, path + '-away')
    } catch {}
    renameSync(folder, path)
    renameSync(path, folder)
  }`

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}

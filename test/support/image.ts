import { execFileSync, spawn } from 'node:child_process'
import { readFileSync, realpathSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

const ROOT = new URL('../..', import.meta.url).pathname
const SUITE = 'bookworm'

/** The part of the image's configuration that a container needs. */
export type ImageConfig = {
  User: string
  Env: string[]
  WorkingDir: string
  Entrypoint: string[]
  Cmd: string[]
  Healthcheck?: { Test: string[] }
}

export type Image = {
  config: ImageConfig
  /** The folder with the files of the image. */
  rootfs: string
  remove(): Promise<void>
}

/** Returns why this machine cannot build an image and run it, or undefined if it can. */
export function findObstacle(): string | undefined {
  if (process.getuid?.() !== 0) return 'only root can create a container here'
  for (const [program, ...args] of [
    ['buildah', '--version'],
    ['mmdebstrap', '--version'],
    ['unshare', '--mount', '--pid', '--fork', 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt'],
    ['chroot', '/', 'true'],
  ]) {
    try {
      execFileSync(program!, args, { stdio: 'ignore' })
    } catch {
      return `${[program, ...args].join(' ')} fails`
    }
  }
  return undefined
}

/**
 * Builds the image of the Dockerfile. A registry is not necessary: the base images come from Debian's mirror, and from
 * the Node and the npm that run this test. The packages come from npm's cache.
 */
export async function buildImage(): Promise<Image> {
  const folder = await mkdtemp(join(tmpdir(), 'courtside-image-'))
  const run = (command: string, ...args: string[]) => execFileSync(command, args, { encoding: 'utf8', stdio: 'pipe' })
  const storage = ['--root', join(folder, 'storage'), '--runroot', join(folder, 'run')]
  const buildah = (...args: string[]) => run('buildah', ...storage, ...args).trim()
  const remove = async () => {
    buildah('umount', '--all')
    await rm(folder, { recursive: true, force: true })
  }
  try {
    const base = join(folder, 'base.tar')
    run('mmdebstrap', '--quiet', '--variant=essential', '--include=libstdc++6,passwd', SUITE, base)
    const runtime = buildah('from', 'scratch')
    buildah('add', '--quiet', runtime, base, '/')
    buildah('commit', '--quiet', runtime, 'courtside-base')

    const builder = buildah('from', 'courtside-base')
    const npm = dirname(dirname(realpathSync(run('which', 'npm').trim())))
    const settings = join(folder, 'npmrc')
    await writeFile(settings, 'prefer-offline=true\ncache=/npm-cache\n')
    buildah('copy', '--quiet', builder, process.execPath, '/usr/local/bin/node')
    buildah('copy', '--quiet', builder, npm, '/usr/local/lib/node_modules/npm')
    buildah('copy', '--quiet', builder, settings, '/root/.npmrc')
    const link = ['ln', '-s', '../lib/node_modules/npm/bin/npm-cli.js', '/usr/local/bin/npm']
    buildah('run', '--isolation', 'chroot', builder, ...link)
    buildah('commit', '--quiet', builder, 'courtside-build-base')

    buildah(
      ...['build', '--quiet', '--isolation', 'chroot', '--format', 'docker', '--layers=false'],
      ...['--build-arg', 'BASE=localhost/courtside-base', '--build-arg', 'BUILD_BASE=localhost/courtside-build-base'],
      ...['--volume', `${run('npm', 'config', 'get', 'cache').trim()}:/npm-cache`],
      ...['--tag', 'courtside', ROOT],
    )
    const { config } = JSON.parse(buildah('inspect', '--type', 'image', 'courtside')).Docker
    return { config, rootfs: buildah('mount', buildah('from', 'localhost/courtside')), remove }
  } catch (error) {
    const { message, stderr = '' } = error as Error & { stderr?: string }
    await remove().catch(() => {})
    throw new Error(`${message}\n${stderr}`)
  }
}

/**
 * Returns a folder and a configuration that replace the image if no image can be built: the files of this
 * checkout, which the user of the container cannot change.
 */
export function imitateImage(): Image {
  const dockerfile = readFileSync(join(ROOT, 'Dockerfile'), 'utf8')
  const read = (name: string) => JSON.parse(new RegExp(`^${name} (\\[.*\\])$`, 'm').exec(dockerfile)![1]!)
  return {
    rootfs: '/',
    config: {
      User: /^USER (.*)$/m.exec(dockerfile)![1]!,
      Env: [`PATH=${dirname(process.execPath)}:/usr/bin:/bin`, .../^ENV (.*)$/m.exec(dockerfile)![1]!.split(' ')],
      WorkingDir: ROOT,
      Entrypoint: read('ENTRYPOINT'),
      Cmd: read('CMD'),
      Healthcheck: { Test: ['CMD', ...JSON.parse(/HEALTHCHECK .* CMD (\[.*\])/.exec(dockerfile)![1]!)] },
    },
    remove: async () => {},
  }
}

/**
 * Starts a command as a container runtime does: as the user of the image, with only the environment of the image and
 * `env`, on a file system that can be read only, except /tmp. The command is process 1 of a new namespace.
 * @param command the whole command, or undefined for the command of the image
 */
export function startContainer({ config, rootfs }: Image, env: Record<string, string>, command?: string[]) {
  const [user, group] = config.User.split(':') as [string, string]
  // A container runtime sets HOME to the home folder in the passwd entry.
  const environment = [
    'HOME=/nonexistent',
    ...config.Env,
    ...Object.entries(env).map(([name, value]) => `${name}=${value}`),
  ]
  const program = [
    ...['env', '--ignore-environment', `--chdir=${config.WorkingDir}`, ...environment],
    ...(command ?? [...config.Entrypoint, ...config.Cmd]),
  ]
  if (rootfs === '/') {
    const asUser = process.getuid?.() === 0 ? ['--reuid', user, '--regid', group, '--clear-groups'] : []
    return spawn('setpriv', ['--no-new-privs', ...asUser, ...program], { stdio: ['ignore', 'pipe', 'pipe'] })
  }
  const script = `set -e
    mount --bind "$0" "$0"
    mount -o remount,bind,ro "$0"
    mount -t proc proc "$0/proc"
    mount -t tmpfs tmpfs "$0/tmp"
    mount --rbind /dev "$0/dev"
    exec chroot --userspec=${user}:${group} --groups= "$0" "$@"`
  const namespace = ['--mount', '--pid', '--fork', '--kill-child', 'sh', '-c', script, rootfs]
  return spawn('unshare', [...namespace, ...program], { stdio: ['ignore', 'pipe', 'pipe'] })
}

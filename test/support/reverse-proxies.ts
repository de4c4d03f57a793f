import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { waitUntil } from './wait-until.ts'

const DEPLOY = new URL('../../deploy/', import.meta.url)

type Kind = {
  program: string
  debianPackage: string
  /** The file in deploy/. */
  file: string
  /** Changes the file as an operator does: the address to listen on, and no TLS. @throws if a line is missing */
  adapt(text: string, port: number): string
  args(path: string, folder: string): string[]
}

export const REVERSE_PROXIES: Kind[] = [
  {
    program: 'nginx',
    debianPackage: 'nginx-light',
    file: 'nginx.conf',
    adapt: (text, port) => {
      const plain = replace(text, [
        ['  listen 80;\n', `  listen unix:/dev/null;\n`],
        ['listen 443 ssl http2;', `listen 127.0.0.1:${port};`],
        [/ {2}ssl_certificate .*\n {2}ssl_certificate_key .*\n/, ''],
      ]).replace(/server \{\n {2}listen unix:[\s\S]*?\n\}\n/, '')
      return wrapServers(plain)
    },
    args: (path, folder) => ['-p', folder, '-c', path],
  },
  {
    program: 'haproxy',
    debianPackage: 'haproxy',
    file: 'haproxy.cfg',
    adapt: (text, port) =>
      replace(text, [
        ['  bind :80\n', ''],
        [/bind :443 ssl .*/, `bind 127.0.0.1:${port}`],
        [/ {2}http-request redirect scheme https .*\n/, ''],
      ]),
    args: path => ['-db', '-f', path],
  },
  {
    program: 'caddy',
    debianPackage: 'caddy',
    file: 'Caddyfile',
    adapt: (text, port) =>
      `{\n\tadmin off\n\tauto_https off\n}\n${replace(text, [['\ncourtside.example {', `\nhttp://127.0.0.1:${port} {`]])}`,
    args: path => ['run', '--adapter', 'caddyfile', '--config', path],
  },
]

function replace(text: string, pairs: [string | RegExp, string][]): string {
  return pairs.reduce((changed, [from, to]) => {
    const next = changed.replace(from, to)
    if (next === changed) throw new Error(`the file does not contain ${from}`)
    return next
  }, text)
}

/** Returns a configuration of nginx that contains the server blocks `servers`. */
function wrapServers(servers: string): string {
  return `daemon off; pid nginx.pid; error_log stderr warn; worker_processes 2; events {}
    http { access_log off; client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi; scgi_temp_path scgi;\n${servers}}`
}

export function isInstalled(program: string): boolean {
  try {
    execFileSync('which', [program], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

/**
 * Starts a reverse proxy with its file from deploy/.
 * @param ports the ports of the two processes of the service, instead of 3000 and 3001
 * @param folder a new folder for the changed file and the files of the proxy
 */
export async function startReverseProxy(kind: Kind, ports: [number, number], folder: string) {
  const port = await findFreePort()
  await mkdir(folder, { recursive: true })
  const path = join(folder, kind.file)
  const shipped = await readFile(new URL(kind.file, DEPLOY), 'utf8')
  const text = replace(kind.adapt(shipped, port), [
    [/127\.0\.0\.1:3000/g, `127.0.0.1:${ports[0]}`],
    [/127\.0\.0\.1:3001/g, `127.0.0.1:${ports[1]}`],
  ])
  await writeFile(path, text)
  return run(kind, path, port, folder)
}

/**
 * Starts nginx with the server blocks `servers`, one of which listens on `port`.
 * @param folder an existing folder for the configuration and the files of nginx
 */
export async function startNginx(servers: string, port: number, folder: string) {
  const kind = REVERSE_PROXIES.find(({ program }) => program === 'nginx')!
  const path = join(folder, kind.file)
  await writeFile(path, wrapServers(servers))
  return run(kind, path, port, folder)
}

/** Runs a reverse proxy, and waits until it forwards requests from `port`. */
async function run(kind: Kind, path: string, port: number, folder: string) {
  const env = { PATH: process.env.PATH, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder }
  const child = spawn(kind.program, kind.args(path, folder), { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] })
  const output: string[] = []
  for (const stream of [child.stdout, child.stderr]) stream.on('data', chunk => output.push(String(chunk)))
  const address = `http://127.0.0.1:${port}`
  await waitUntil(async () => {
    if (child.exitCode !== null) throw new Error(`${kind.program} ended:\n${output.join('')}`)
    return (await fetch(`${address}/healthz`).catch(() => undefined))?.ok ?? false
  })
  return { address, output, stop: () => stop(child) }
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  await exited
}

/** Returns a port of this machine that is currently free. */
export async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  await once(server.close(), 'close')
  return port
}

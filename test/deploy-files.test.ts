import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { promisify } from 'node:util'
import { parse } from 'yaml'
import { readConfig } from '../src/config.ts'
import { SETTINGS } from '../src/settings.ts'
import { harness, INTAKE_KEY, JWT_SECRET } from './support/app.ts'
import { isInstalled } from './support/reverse-proxies.ts'

const ROOT = new URL('..', import.meta.url).pathname
const METRICS_TOKEN = 'gT5nV8xK2mQ9wZ4c'
const h = harness({ METRICS_TOKEN })

const read = (path: string) => readFileSync(`${ROOT}/${path}`, 'utf8')
const run = (program: string, ...args: string[]) =>
  execFileSync(program, args, { cwd: ROOT, encoding: 'utf8', stdio: 'pipe' })

/** Returns why a test must be skipped, or false if the program is installed. With CI=true, the test fails instead. */
function skipWithout(program: string, debianPackage: string): string | false {
  return !process.env.CI && !isInstalled(program) && `${program} is not installed (apt-get install ${debianPackage})`
}

/** Returns the names of the metrics of Courtside and of Node in an expression of Prometheus. */
const findMetrics = (expression: string) => expression.match(/\b(courtside|process|nodejs)_\w+/g) ?? []

/** Returns the settings in an environment. Variables that only Node reads are not settings of ours. */
const findSettings = (names: string[]) => names.filter(name => name !== 'NODE_ENV')

describe('deploy/courtside.service', () => {
  const unit = read('deploy/courtside.service')
  const option = (name: string) => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1]
  const environment = Object.fromEntries(
    option('Environment')!
      .split(' ')
      .map(pair => pair.split('=')),
  )

  test('systemd rates the exposure of the unit as 2.0 or less', {
    skip: skipWithout('systemd-analyze', 'systemd'),
  }, () => {
    const args = ['security', '--no-pager', '--offline=true', '--threshold=20', 'deploy/courtside.service']
    assert.match(run('systemd-analyze', ...args), /Overall exposure level for courtside\.service: [01]\.\d|2\.0/)
  })

  test('the unit starts the command of npm start, and gives it enough time to stop', () => {
    const { scripts } = JSON.parse(read('package.json'))
    assert.equal(option('ExecStart'), scripts.start.split('exec ')[1].replace('bin/node', '/opt/courtside/bin/node'))
    assert.ok(Number(option('TimeoutStopSec')) > Number.parseInt(environment.STOP_DELAY, 10) + 10)
    assert.deepEqual([option('KillMode'), option('RestartPreventExitStatus')], ['mixed', '64 78'])
  })

  test('the unit and the image let a start take an hour, because a migration may take minutes', () => {
    const seconds = Number(/^\S+ bin\/check-ready\.js (\d+)$/.exec(option('ExecStartPost')!)![1])
    assert.ok(seconds >= 3_600 && Number(option('TimeoutStartSec')) > seconds)
    assert.match(read('Dockerfile'), /^HEALTHCHECK .*--start-period=1h /m)
  })

  test('the settings in the unit and those in its installation steps are all that a start needs', () => {
    const listed = /DATABASE_URL[^.]*/.exec(unit)![0].match(/[A-Z_]{5,}/g)!
    for (const name of findSettings([...Object.keys(environment), ...listed])) assert.ok(name in SETTINGS, name)
    const config = readConfig({ ...environment, ...fill(listed) })
    assert.equal(config.stopDelayMs, 5_000)
  })
})

/** Returns an environment with a valid value for each of the settings. */
function fill(names: string[]): Record<string, string> {
  const values: Record<string, string> = {
    DATABASE_URL: 'postgres://courtside:password@db.example/courtside',
    SMTP_URL: 'smtps://mail.example',
    MAIL_FROM: 'Club <no-reply@club.example>',
    JWT_SECRET,
    INTAKE_KEYS: INTAKE_KEY,
    TRUST_PROXY: '127.0.0.1',
  }
  return Object.fromEntries(names.map(name => [name, values[name]!]))
}

describe('bin/check-ready.js', () => {
  const checkReady = (env: Record<string, string>) =>
    promisify(execFile)(process.execPath, ['bin/check-ready.js'], { cwd: ROOT, env }).then(
      () => 'ready',
      error => error.stderr.trim(),
    )

  test('blank settings and blanks around settings mean the same as they do for the service', async t => {
    const server = createServer((_, response) => response.end()).listen(0, '127.0.0.1')
    t.after(() => server.close())
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    for (const HOST of ['', ' ', ' 127.0.0.1 ', '0.0.0.0 ']) {
      assert.equal(await checkReady({ HOST, PORT: ` ${port} ` }), 'ready', JSON.stringify(HOST))
    }
    // No service listens on this address.
    for (const PORT of ['', ' ']) {
      assert.equal(await checkReady({ HOST: '127.9.9.9', PORT }), '/readyz of 127.9.9.9:3000: ECONNREFUSED')
    }
  })
})

describe('compose.yaml', () => {
  const { services } = parse(read('compose.yaml'))

  test('the environment of the service is a valid configuration, with secrets only from .env', () => {
    const secrets = { JWT_SECRET, INTAKE_KEYS: INTAKE_KEY, POSTGRES_PASSWORD: 'p4_-sswordOfTheDatabase' }
    const environment = Object.fromEntries(
      Object.entries<string>(services.courtside.environment).map(([name, value]) => [
        name,
        value.replace(/\$\{(\w+):([-?])([^}]*)\}/g, (_, variable, operator, fallback) => {
          if (operator === '-') return fallback
          assert.ok(variable in secrets, variable)
          return secrets[variable as keyof typeof secrets]
        }),
      ]),
    )
    for (const name of findSettings(Object.keys(environment))) assert.ok(name in SETTINGS, name)
    const config = readConfig({ ...environment, NODE_ENV: 'production', HOST: '0.0.0.0' })
    assert.deepEqual([config.stopDelayMs, config.mailServer?.value], [5_000, 'smtp://mail:1025'])
    for (const secret of Object.keys(secrets)) assert.match(read('compose.yaml'), new RegExp(`\\$\\{${secret}:\\?`))
  })

  test('the service has a read-only file system, no capabilities, a limited log and time to stop', () => {
    const { read_only, cap_drop, security_opt, logging, stop_grace_period } = services.courtside
    assert.deepEqual([read_only, cap_drop, security_opt], [true, ['ALL'], ['no-new-privileges:true']])
    assert.ok(logging.options['max-size'] && logging.options['max-file'])
    assert.equal(stop_grace_period, '20s')
  })
})

test('the commands in compose.yaml write the secrets to a file that no other user can read', t => {
  const folder = mkdtempSync(join(tmpdir(), 'courtside-compose-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const [, commands] = /^# {3}2\..*\n((?:# {6}.*\n)+)/m.exec(read('compose.yaml'))!
  const script = `docker() { echo secret; }\n${commands!.replace(/^# {6}/gm, '')}`
  for (let round = 0; round < 2; round += 1) {
    // In the second round, the file exists and others may read it.
    execFileSync('bash', ['-c', `umask 022\n${script}`], { cwd: folder })
    assert.equal(statSync(join(folder, '.env')).mode & 0o777, 0o600)
    assert.match(readFileSync(join(folder, '.env'), 'utf8'), /^JWT_SECRET=secret$/m)
    chmodSync(join(folder, '.env'), 0o644)
  }
})

describe('the alerts and the dashboard', () => {
  const dashboard = JSON.parse(read('deploy/grafana.json'))
  const { groups } = parse(read('deploy/alerts.yaml'))
  const rules: { alert: string; expr: string }[] = groups.flatMap(({ rules }: { rules: [] }) => rules)

  test('each alert fires at its fault and not in a healthy installation', {
    skip: skipWithout('promtool', 'prometheus'),
  }, () => {
    run('promtool', 'check', 'rules', 'deploy/alerts.yaml')
    assert.match(run('promtool', 'test', 'rules', 'deploy/alerts.test.yaml'), /SUCCESS/)
    const tests = read('deploy/alerts.test.yaml')
    for (const { alert } of rules) assert.ok(tests.includes(`alertname="${alert}"`), alert)
  })

  test('each metric in an alert or on the dashboard exists, and the dashboard shows each metric of Courtside', async () => {
    const { text } = await h.call('GET', '/metrics', { token: METRICS_TOKEN })
    const existing = new Set([...text.matchAll(/^# TYPE (\w+)/gm)].map(([, name]) => name!))
    const panels: { targets?: { expr: string }[] }[] = dashboard.panels
    const expressions = [
      ...rules.map(({ expr }) => expr),
      ...panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
    ]
    assert.ok(expressions.length > 30)
    for (const metric of expressions.flatMap(findMetrics)) {
      assert.ok(existing.has(metric.replace(/_bucket$/, '')), metric)
    }
    const shown = new Set(
      expressions
        .slice(rules.length)
        .flatMap(findMetrics)
        .map(name => name.replace(/_bucket$/, '')),
    )
    const missing = [...existing].filter(name => name.startsWith('courtside_') && !shown.has(name))
    assert.deepEqual(missing, [], 'the dashboard shows no panel for these metrics')
  })

  test('the panels of the dashboard do not overlap', () => {
    const cells = new Set<string>()
    for (const { gridPos, title } of dashboard.panels) {
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x += 1) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y += 1) {
          assert.ok(!cells.has(`${x},${y}`) && x < 24, title)
          cells.add(`${x},${y}`)
        }
      }
    }
  })
})

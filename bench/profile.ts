// node bench/profile.ts PART [--rounds N] [--seconds N] runs one part of the bench, such as `reads`, while Node
// profiles the service. The program then prints how the service spent its CPU time. To profile another program of the
// bench instead of the service, set BENCH_PROFILE_PROGRAM to its name.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

type CallFrame = { functionName: string; url: string; lineNumber: number }

type Profile = {
  nodes: { id: number; callFrame: CallFrame; children?: number[] }[]
  samples: number[]
  timeDeltas: number[]
}

const [part, ...options] = process.argv.slice(2)
const folder = await mkdtemp(join(tmpdir(), 'courtside-profile-'))
try {
  const run = new URL('./run.ts', import.meta.url).pathname
  const env = { ...process.env, BENCH_PROFILE_DIR: folder }
  await once(spawn(process.execPath, [run, '--only', part!, ...options], { env, stdio: 'inherit' }), 'exit')
  const files = await readdir(folder)
  for (const file of files) print(JSON.parse(await readFile(join(folder, file), 'utf8')))
} finally {
  await rm(folder, { recursive: true, force: true })
}

function print({ nodes, samples, timeDeltas }: Profile): void {
  const selfTimes = new Map<number, number>()
  for (const [index, id] of samples.entries()) add(selfTimes, id, timeDeltas[index]!)
  const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map(child => [child, id] as const)))
  const names = new Map(nodes.map(node => [node.id, describeFrame(node.callFrame)]))
  const byPackage = new Map<string, number>()
  const byFunction = new Map<string, number>()
  const totals = new Map<string, number>()
  let busy = 0
  for (const { id, callFrame } of nodes) {
    const time = selfTimes.get(id) ?? 0
    const callers = [...callChain(id, parents)].map(each => names.get(each)!)
    // Skip the idle time, and the loading of modules during the startup.
    if (/^\((idle|root)\)/.test(names.get(id)!) || callers.some(name => /internal\/modules|bootstrap/.test(name)))
      continue
    busy += time
    add(byPackage, callFrame.url === '' ? callFrame.functionName : findPackage(callFrame.url), time)
    add(byFunction, names.get(id)!, time)
    for (const name of new Set(callers)) add(totals, name, time)
  }
  console.log(`\n${(busy / 1e6).toFixed(1)} s of CPU time`)
  show('by package, without callees', byPackage, 15)
  show('by function, without callees', byFunction, 25)
  show('by function, with callees', totals, 70)

  function show(title: string, times: Map<string, number>, limit: number): void {
    console.log(`\n${title}\n`)
    const sorted = [...times].toSorted(([, one], [, other]) => other - one).slice(0, limit)
    for (const [name, time] of sorted) console.log(`${((time / busy) * 100).toFixed(1).padStart(5)} %  ${name}`)
  }
}

function* callChain(id: number, parents: Map<number, number>): Generator<number> {
  for (let at: number | undefined = id; at !== undefined; at = parents.get(at)) yield at
}

function describeFrame({ functionName, url, lineNumber }: CallFrame): string {
  return `${functionName || '(anonymous)'} ${shortenUrl(url)}:${lineNumber + 1}`
}

function add<K>(sums: Map<K, number>, key: K, value: number): void {
  sums.set(key, (sums.get(key) ?? 0) + value)
}

function findPackage(url: string): string {
  if (url.startsWith('node:')) return url
  return /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1] ?? shortenUrl(url)
}

function shortenUrl(url: string): string {
  return url.replace(/^.*node_modules\//, '').replace(/^file:.*?\/(src|bin)\//, '$1/')
}

import type { EventEmitter } from 'node:events'
import type pg from 'pg'

/** What PostgreSQL says of one statement that has run (`auto_explain`, as JSON). */
type ExplainedStatement = { 'Query Text': string; Plan: Node }

type Node = {
  'Node Type': string
  'Relation Name'?: string
  'Actual Rows': number
  'Actual Loops': number
  'Shared Hit Blocks'?: number
  'Shared Read Blocks'?: number
  'Rows Removed by Filter'?: number
  'Actual Total Time'?: number
  Plans?: Node[]
}

export type Plan = {
  /** Which request ran it. */
  request: string
  statement: string
  ms: number
  /** Pages of 8 kB that were looked at. */
  pages: number
  root: Node
}

/** What makes each statement of a connection tell its plan, as a notice to the client. */
export const AUTO_EXPLAIN_SETTINGS = [
  'session_preload_libraries=auto_explain',
  'auto_explain.log_min_duration=0',
  'auto_explain.log_analyze=on',
  'auto_explain.log_buffers=on',
  'auto_explain.log_format=json',
  // What the queue's functions do inside counts too.
  'auto_explain.log_nested_statements=on',
  'client_min_messages=log',
]

/** Collects the plans of all that new connections run, those of a pool or of a pipeline. */
export function collectPlans(connections: EventEmitter, collected: (explained: Omit<Plan, 'request'>) => void): void {
  connections.on('connect', (client: pg.Client) => {
    client.on('notice', ({ message }) => {
      const json = /plan:\s*(\{.*\})\s*$/s.exec(message ?? '')?.[1]
      if (json === undefined) return
      const { 'Query Text': statement, Plan: root } = JSON.parse(json) as ExplainedStatement
      const pages = (root['Shared Hit Blocks'] ?? 0) + (root['Shared Read Blocks'] ?? 0)
      collected({ statement, root, pages, ms: root['Actual Total Time'] ?? 0 })
    })
  })
}

// A handful of rows that never become more, the queue's tables, which are empty but for what is to be mailed just now, and
// the list of migrations.
const SMALL_TABLES = ['game_level', 'missed_guess', 'migration', '_private_jobs', '_private_job_queues', '_private_tasks']

// So many a page or a batch asks for, and three are told of each fact of a batch: to put those in order is no search.
const MAX_ROWS = 300

/** What is wrong with a plan: it reads a table from end to end, or sorts more than was asked for. */
export function findFaults({ root }: Pick<Plan, 'root'>): string[] {
  return [...walk(root)].flatMap(node => {
    const name = node['Relation Name']
    const rows = node['Actual Rows'] * node['Actual Loops']
    if (node['Node Type'] === 'Seq Scan' && !SMALL_TABLES.includes(name!)) return [`reads all of ${name}`]
    if (node['Node Type'].includes('Sort') && rows > MAX_ROWS) return [`sorts ${rows} rows`]
    if ((node['Rows Removed by Filter'] ?? 0) * node['Actual Loops'] > MAX_ROWS) {
      return [`looks at ${node['Rows Removed by Filter']} rows of ${name} in vain`]
    }
    return []
  })
}

function* walk(node: Node): Generator<Node> {
  yield node
  for (const child of node.Plans ?? []) yield* walk(child)
}

/** A plan in a line: what is done with which table, from the outside in. */
export function describeShape(node: Node): string {
  const name = node['Relation Name'] ? ` ${node['Relation Name']}` : ''
  const inside = (node.Plans ?? []).map(describeShape).join(', ')
  return `${node['Node Type']}${name}${inside && ` (${inside})`}`
}

import type { EventEmitter } from 'node:events'
import type pg from 'pg'

/** The JSON that `auto_explain` logs for one executed statement. */
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
  /** The name of the request that ran the statement. */
  request: string
  statement: string
  ms: number
  /** The number of pages of 8 kB that the statement read. */
  pages: number
  root: Node
}

/** Settings of a connection on which PostgreSQL sends the plan of each statement to the client as a notice. */
export const AUTO_EXPLAIN_SETTINGS = [
  'session_preload_libraries=auto_explain',
  'auto_explain.log_min_duration=0',
  'auto_explain.log_analyze=on',
  'auto_explain.log_buffers=on',
  'auto_explain.log_format=json',
  'client_min_messages=log',
]

/**
 * Calls `collected` with the plan of each statement that runs on a new connection.
 * @param connections a pool or a pipeline
 */
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

// PostgreSQL may read these tables completely, because they stay small. In the bench, only a few mails wait in
// `outbox`. In production, many may wait, but there the connections forbid sequential scans.
const SMALL_TABLES = ['game_level', 'missed_guess', 'migration', 'network_key', 'outbox', 'sign_in_installation']

// In the measured requests, a batch of 100 events has 300 recipients, so a statement may sort 300 rows.
const MAX_SORTED_ROWS = 300

/** Lists the faults of a plan: steps that read a whole table, sort too many rows, or filter out too many rows. */
export function findFaults({ root }: Pick<Plan, 'root'>): string[] {
  return [...walk(root)].flatMap(node => {
    const name = node['Relation Name']
    const rows = node['Actual Rows'] * node['Actual Loops']
    if (node['Node Type'] === 'Seq Scan' && !SMALL_TABLES.includes(name!)) return [`reads all of ${name}`]
    if (node['Node Type'].includes('Sort') && rows > MAX_SORTED_ROWS) return [`sorts ${rows} rows`]
    if ((node['Rows Removed by Filter'] ?? 0) * node['Actual Loops'] > MAX_SORTED_ROWS) {
      return [`filters out ${node['Rows Removed by Filter']} rows of ${name}`]
    }
    return []
  })
}

function* walk(node: Node): Generator<Node> {
  yield node
  for (const child of node.Plans ?? []) yield* walk(child)
}

/** Describes a plan in one line: the type and table of each node, with its child nodes in parentheses. */
export function describeShape(node: Node): string {
  const name = node['Relation Name'] ? ` ${node['Relation Name']}` : ''
  const inside = (node.Plans ?? []).map(describeShape).join(', ')
  return `${node['Node Type']}${name}${inside && ` (${inside})`}`
}

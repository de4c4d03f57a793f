import { createHash } from 'node:crypto'

/** A part of an SQL statement, and the values in this part. */
export class Fragment {
  readonly strings: TemplateStringsArray
  readonly values: readonly unknown[]

  constructor(strings: TemplateStringsArray, values: readonly unknown[]) {
    this.strings = strings
    this.values = values
  }
}

/**
 * Creates a part of a statement. Several statements may share a part, and a statement may contain a part only in some
 * calls: sql`select ${COLUMNS} from game where id = ${id} ${onlyOpen ? fragment`and not cancelled` : NOTHING}`. The SQL
 * text of the part becomes a piece of the statement's SQL text, and its values become parameters of the statement.
 */
export function fragment(strings: TemplateStringsArray, ...values: unknown[]): Fragment {
  return new Fragment(strings, values)
}

export const NOTHING = fragment``

type Named = { name: string; text: string }

type Children<Key> = { get(key: Key): TreeNode | undefined; set(key: Key, node: TreeNode): unknown }

/**
 * A node in the tree of known statements. `named` is the statement that ends at this node. `afterParameter` contains
 * the next node by the index of the parameter that stands here.
 */
type TreeNode = {
  named?: Named
  afterParameter: Map<number, TreeNode>
  afterFragment: WeakMap<TemplateStringsArray, TreeNode>
}

// JavaScript creates one frozen array of strings for each template literal in the source. Two things identify a
// statement: the array of its template, and the order of its values and fragments. The array selects the root of a
// tree. Each value and each fragment then selects the next node. The last node stores the name and the SQL text of the
// statement, so each SQL text is joined, hashed and named only once per process.
const roots = new WeakMap<TemplateStringsArray, TreeNode>()

/**
 * Returns the prepared statement for a template: its name, its SQL text with `$1`, `$2` … in place of the values, and
 * the values. If a statement with fragments contains the same time or the same buffer several times, all occurrences
 * share one parameter. Each parameter takes time in this process and in PostgreSQL.
 */
export function prepareStatement(strings: TemplateStringsArray, values: unknown[]): Named & { values: unknown[] } {
  let node = findNode(roots, strings)
  let bound = values
  if (values.some(isFragment)) {
    bound = []
    node = follow(node, values, bound)
  }
  node.named ??= nameStatement(strings, values)
  return { name: node.named.name, text: node.named.text, values: bound }
}

/**
 * Follows values and fragments from `node` down the tree. Appends the parameters to `bound`.
 * @returns the last node
 */
function follow(node: TreeNode, values: readonly unknown[], bound: unknown[]): TreeNode {
  let current = node
  for (const value of values) {
    if (isFragment(value)) {
      current = follow(findNode(current.afterFragment, value.strings), value.values, bound)
    } else {
      current = findNode(current.afterParameter, bind(value, bound))
    }
  }
  return current
}

/** Adds a value to the parameters, unless it is a repeated time or buffer. @returns the index of the parameter */
function bind(value: unknown, bound: unknown[]): number {
  const index = value instanceof Date ? findTime(value.getTime(), bound) : isBuffer(value) ? bound.indexOf(value) : -1
  return index < 0 ? bound.push(value) - 1 : index
}

function findTime(ms: number, bound: readonly unknown[]): number {
  return bound.findIndex(other => other instanceof Date && other.getTime() === ms)
}

/** Returns the child of a node, and creates it if necessary. */
function findNode<Key>(nodes: Children<Key>, key: Key): TreeNode {
  let node = nodes.get(key)
  if (!node) {
    node = { afterParameter: new Map(), afterFragment: new WeakMap() }
    nodes.set(key, node)
  }
  return node
}

function nameStatement(strings: TemplateStringsArray, values: readonly unknown[]): Named {
  const { parts, flat } = joinParts(strings, values)
  const bound: unknown[] = []
  const indexes = values.some(isFragment) ? flat.map(value => bind(value, bound)) : [...flat.keys()]
  const text = parts.map((part, index) => (index === 0 ? part : `$${indexes[index - 1]! + 1}${part}`)).join('')
  return { name: createHash('sha256').update(text).digest('base64url').slice(0, 22), text }
}

/** Returns the SQL text between the values, and the values, after all fragments have been replaced by their content. */
function joinParts(strings: TemplateStringsArray, values: readonly unknown[]): { parts: string[]; flat: unknown[] } {
  const parts = [strings[0]!]
  const flat: unknown[] = []
  values.forEach((value, index) => {
    if (isFragment(value)) {
      const inner = joinParts(value.strings, value.values)
      parts.push(parts.pop()! + inner.parts[0]!, ...inner.parts.slice(1))
      parts.push(parts.pop()! + strings[index + 1]!)
      flat.push(...inner.flat)
    } else {
      parts.push(strings[index + 1]!)
      flat.push(value)
    }
  })
  return { parts, flat }
}

function isBuffer(value: unknown): value is Uint8Array {
  return value instanceof Uint8Array
}

function isFragment(value: unknown): value is Fragment {
  return value instanceof Fragment
}

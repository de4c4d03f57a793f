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

/** A node in the tree of known statements. `named` is the statement that ends at this node. */
type TreeNode = { named?: Named; afterValue?: TreeNode; afterFragment: WeakMap<TemplateStringsArray, TreeNode> }

// JavaScript creates one frozen array of strings for each template literal in the source. Two things identify a
// statement: the array of its template, and the order of its values and fragments. The array selects the root of a
// tree. Each value and each fragment then selects the next node. The last node stores the name and the SQL text of the
// statement, so each SQL text is joined, hashed and named only once per process.
const roots = new WeakMap<TemplateStringsArray, TreeNode>()

/**
 * Returns the prepared statement for a template: its name, its SQL text with `$1`, `$2` … in place of the values, and
 * the values.
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
 * Follows values and fragments from `node` down the tree. Appends the values to `bound`.
 * @returns the last node
 */
function follow(node: TreeNode, values: readonly unknown[], bound: unknown[]): TreeNode {
  let current = node
  for (const value of values) {
    if (isFragment(value)) {
      current = follow(findNode(current.afterFragment, value.strings), value.values, bound)
    } else {
      bound.push(value)
      current.afterValue ??= createNode()
      current = current.afterValue
    }
  }
  return current
}

function findNode(nodes: WeakMap<TemplateStringsArray, TreeNode>, strings: TemplateStringsArray): TreeNode {
  let node = nodes.get(strings)
  if (!node) {
    node = createNode()
    nodes.set(strings, node)
  }
  return node
}

function createNode(): TreeNode {
  return { afterFragment: new WeakMap() }
}

function nameStatement(strings: TemplateStringsArray, values: readonly unknown[]): Named {
  const text = joinParts(strings, values)
    .map((part, index) => (index === 0 ? part : `$${index}${part}`))
    .join('')
  return { name: createHash('sha256').update(text).digest('base64url').slice(0, 22), text }
}

/** Returns the pieces of SQL text between the values, after the SQL text of the fragments has been inserted. */
function joinParts(strings: TemplateStringsArray, values: readonly unknown[]): string[] {
  const parts = [strings[0]!]
  values.forEach((value, index) => {
    const [first, ...rest] = isFragment(value) ? joinParts(value.strings, value.values) : ['', '']
    parts.push(parts.pop()! + first, ...rest)
    parts.push(parts.pop()! + strings[index + 1]!)
  })
  return parts
}

function isFragment(value: unknown): value is Fragment {
  return value instanceof Fragment
}

import { createHash } from 'node:crypto'

/** A part of a statement, with its values. */
export class Fragment {
  readonly strings: TemplateStringsArray
  readonly values: readonly unknown[]

  constructor(strings: TemplateStringsArray, values: readonly unknown[]) {
    this.strings = strings
    this.values = values
  }
}

/**
 * Makes a part that several statements share, or that some calls of a statement leave out:
 * sql`select ${COLUMNS} from game where id = ${id} ${onlyOpen ? fragment`and not cancelled` : NOTHING}`.
 * The statement takes over the text of the part, and binds the values of the part as its own.
 */
export function fragment(strings: TemplateStringsArray, ...values: unknown[]): Fragment {
  return new Fragment(strings, values)
}

export const NOTHING = fragment``

type Named = { name: string; text: string }

/** A place in the tree of known statements: `named` is the statement that ends there. */
type Site = { named?: Named; afterValue?: Site; afterFragment: WeakMap<TemplateStringsArray, Site> }

// The strings of a template are one frozen object per call site. So a statement is known by the strings of its
// template, and by where its values and the strings of its fragments stand. Each text is joined, hashed and named once
// per process.
const templates = new WeakMap<TemplateStringsArray, Site>()

/**
 * Returns the text of a template with `$1`, `$2` … for its values, these values, and the name of the prepared
 * statement.
 */
export function prepareStatement(strings: TemplateStringsArray, values: unknown[]): Named & { values: unknown[] } {
  let site = findSite(templates, strings)
  let bound = values
  if (values.some(isFragment)) {
    bound = []
    site = follow(site, values, bound)
  }
  site.named ??= nameStatement(strings, values)
  return { name: site.named.name, text: site.named.text, values: bound }
}

/** Walks from `site` along values and fragments, and collects the values into `bound`. */
function follow(site: Site, values: readonly unknown[], bound: unknown[]): Site {
  let current = site
  for (const value of values) {
    if (isFragment(value)) {
      current = follow(findSite(current.afterFragment, value.strings), value.values, bound)
    } else {
      bound.push(value)
      current.afterValue ??= createSite()
      current = current.afterValue
    }
  }
  return current
}

function findSite(sites: WeakMap<TemplateStringsArray, Site>, strings: TemplateStringsArray): Site {
  let site = sites.get(strings)
  if (!site) {
    site = createSite()
    sites.set(strings, site)
  }
  return site
}

function createSite(): Site {
  return { afterFragment: new WeakMap() }
}

function nameStatement(strings: TemplateStringsArray, values: readonly unknown[]): Named {
  const text = joinParts(strings, values)
    .map((part, index) => (index === 0 ? part : `$${index}${part}`))
    .join('')
  return { name: createHash('sha256').update(text).digest('base64url').slice(0, 22), text }
}

/** Returns the texts between the values, with the texts of fragments joined in. */
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

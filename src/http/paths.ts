import type { RouteOptions } from 'fastify'
import { AppError, notFound } from '../errors.ts'

/**
 * Creates an empty table of paths and their methods. The table decides whether a request that matches no route gets a
 * 404 or a 405.
 */
export function createPathTable() {
  const entries = new Map<string, { pattern: RegExp; methods: Set<string> }>()
  const allMethods: string[] = []
  return {
    /**
     * The methods of all paths in the table. The CORS plugin receives this array before the routes are added. Therefore
     * `add` changes the array and does not replace it.
     */
    allMethods,

    add({ url, method, config }: Pick<RouteOptions, 'url' | 'method' | 'config'>): void {
      if (config?.unlisted) return
      const entry = entries.get(url) ?? { pattern: toPattern(url), methods: new Set() }
      for (const name of [method].flat()) {
        entry.methods.add(name)
        if (!allMethods.includes(name)) allMethods.push(name)
      }
      entries.set(url, entry)
    },

    /**
     * Returns the error for a request that matches no route. If the table does not contain the path, the error is a
     * 404. Otherwise the error is a 405, and its header `Allow` lists the methods of the path.
     */
    toError(url: string): AppError {
      const path = decode(url.split('?', 1)[0]!)
      const methods = [...entries.values()]
        .filter(({ pattern }) => pattern.test(path))
        .flatMap(entry => [...entry.methods])
      if (methods.length === 0) return notFound()
      return new AppError(
        'method_not_allowed',
        { fr: 'Méthode non autorisée.', en: 'Method not allowed.' },
        { headers: { allow: [...new Set(methods)].sort().join(', ') } },
      )
    },
  }
}

function toPattern(url: string): RegExp {
  const escaped = url.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
  return new RegExp(`^${escaped.replace(/:[^/]+/g, '[^/]+')}$`)
}

/**
 * Decodes a path as the router does, so a percent-encoded path matches the same pattern in the router and in this
 * table.
 */
function decode(path: string): string {
  try {
    return decodeURI(path)
  } catch {
    return path
  }
}

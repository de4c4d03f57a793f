import type { RouteOptions } from 'fastify'
import { AppError, notFound } from '../errors.ts'

/**
 * Creates a table of all paths and their methods. The table decides whether a request that matches no route gets a 404
 * or a 405.
 */
export function createPathTable() {
  const entries = new Map<string, { pattern: RegExp; methods: Set<string> }>()
  const allMethods: string[] = []
  return {
    /** The methods of all paths, for CORS. `add` appends new methods to this same array. */
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

    /** Returns a 404 for an unknown path, or a 405 with `Allow` for a known path with another method. */
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

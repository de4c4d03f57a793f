import type { RouteOptions } from 'fastify'
import { AppError, notFound } from '../errors.ts'

/** Collects every path with its methods, to tell an unknown path (404) from an unknown method (405 with `Allow`). */
export function createPathTable() {
  const entries = new Map<string, { pattern: RegExp; methods: Set<string> }>()
  const allMethods: string[] = []
  return {
    /** The methods of all paths, for CORS. The list grows with each `add`. */
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

    /** Returns the error for a request that matches no route. */
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

/** Decodes as the router does, so a path that the router knows under another spelling is known here too. */
function decode(path: string): string {
  try {
    return decodeURI(path)
  } catch {
    return path
  }
}

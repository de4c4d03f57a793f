import type { FastifyRequest, RouteOptions } from 'fastify'
import { AppError, notFound } from '../errors.ts'

/**
 * Creates an empty table of paths and their methods. The table decides whether a request that matches no route gets a
 * 404 or a 405.
 * @param options.answersOptions whether every path answers OPTIONS, so that each `Allow` header contains this method
 */
export function createPathTable({ answersOptions }: { answersOptions: boolean }) {
  const entries = new Map<string, { pattern: RegExp; methods: Set<string> }>()
  const allMethods: string[] = []

  function toMethodError(methods: string[]): AppError {
    const allowed = new Set(answersOptions ? [...methods, 'OPTIONS'] : methods)
    return new AppError(
      'method_not_allowed',
      { fr: 'Méthode non autorisée.', en: 'Method not allowed.' },
      { headers: { allow: [...allowed].sort().join(', ') } },
    )
  }

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
     * Checks a request that the router has assigned to a route with a parameter. Another route may have exactly the
     * path of the request, but not its method: `DELETE /notifications/unread-count` matches `DELETE
     * /notifications/:id`.
     * @throws AppError 405 for such a request
     */
    checkMethod({ url, method, routeOptions }: FastifyRequest): void {
      if (!routeOptions.url?.includes('/:')) return
      const exact = entries.get(decode(url.split('?', 1)[0]!))
      if (exact && !exact.methods.has(method)) throw toMethodError([...exact.methods])
    },

    /**
     * Returns the error for a request that matches no route. If the table does not contain the path, the error is a
     * 404. Otherwise the error is a 405, and its header `Allow` lists the methods of the path.
     */
    toError(url: string): AppError {
      const path = decode(url.split('?', 1)[0]!)
      const exact = entries.get(path)
      const methods = (exact ? [exact] : [...entries.values()].filter(({ pattern }) => pattern.test(path))).flatMap(
        entry => [...entry.methods],
      )
      return methods.length === 0 ? notFound() : toMethodError(methods)
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

import type { RouteOptions } from 'fastify'
import { AppError, notFound } from '../errors.ts'

/** Every path with its methods, to tell an unknown path (404) from an unknown method (405 with `Allow`). */
export function pathTable() {
  const known = new Map<string, { pattern: RegExp; methods: Set<string> }>()
  return {
    add({ url, method, config }: Pick<RouteOptions, 'url' | 'method' | 'config'>): void {
      if (config?.unlisted) return
      const entry = known.get(url) ?? { pattern: patternOf(url), methods: new Set() }
      for (const name of [method].flat()) entry.methods.add(name)
      known.set(url, entry)
    },

    /** What to say to a request that met no route. */
    refusal(url: string): AppError {
      const path = decoded(url.split('?', 1)[0]!)
      const methods = [...known.values()]
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

function patternOf(url: string): RegExp {
  const escaped = url.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
  return new RegExp(`^${escaped.replace(/:[^/]+/g, '[^/]+')}$`)
}

/** As the router reads it, so that a spelling it knows isn't an unknown path here. */
function decoded(path: string): string {
  try {
    return decodeURI(path)
  } catch {
    return path
  }
}

/**
 * Returns the path and the query of a target that is a whole URL, as clients of proxies send it. The router and the
 * table of paths then read the same path. Returns every other target unchanged.
 */
export function toOriginForm(target: string): string {
  const [, rest] = /^https?:\/\/[^/?]*(.*)$/is.exec(target) ?? []
  if (rest === undefined) return target
  return rest.startsWith('/') ? rest : `/${rest}`
}

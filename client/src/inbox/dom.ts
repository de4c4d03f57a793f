type Child = Node | string | undefined

/** An element with attributes and children. Text is set as text, never read as markup. */
export function h<K extends keyof HTMLElementTagNameMap>(
  name: K,
  attributes: Record<string, string> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(name)
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value)
  for (const child of children) if (child !== undefined) element.append(child)
  return element
}

/** A drawing of one path on a field of 24 by 24, which says nothing to a screen reader. */
export function icon(path: string): SVGSVGElement {
  const drawing = document.createElementNS('http://www.w3.org/2000/svg', 'svg')
  drawing.setAttribute('viewBox', '0 0 24 24')
  drawing.setAttribute('aria-hidden', 'true')
  const line = document.createElementNS('http://www.w3.org/2000/svg', 'path')
  line.setAttribute('d', path)
  drawing.append(line)
  return drawing
}

export const BELL = 'M6 10a6 6 0 0 1 12 0c0 5 2 6.5 2 6.5H4S6 15 6 10M10 20a2.2 2.2 0 0 0 4 0'
export const CROSS = 'M7 7l10 10M17 7 7 17'

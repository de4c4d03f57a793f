import { createHash } from 'node:crypto'

/** Text that is markup already, because `html` made it. */
export class Markup {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

/** Markup from a template. Every value is escaped, but for what is `Markup` itself; a list is joined. */
export function html(strings: TemplateStringsArray, ...values: (string | number | Markup | Markup[])[]): Markup {
  return new Markup(strings.reduce((page, part, index) => page + written(values[index - 1]!) + part))
}

function written(value: string | number | Markup | Markup[]): string {
  if (value instanceof Markup) return value.text
  if (Array.isArray(value)) return value.map(written).join('')
  return String(value).replace(/[&<>"']/g, character => `&#${character.charCodeAt(0)};`)
}

/** Returns the Content-Security-Policy of a page that has no script and only the given style. */
export function pagePolicy(style: string): string {
  const hash = createHash('sha256').update(style).digest('base64')
  const closed = ["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"]
  return ["default-src 'none'", `style-src 'sha256-${hash}'`, ...closed].join('; ')
}

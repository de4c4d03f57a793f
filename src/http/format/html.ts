import { createHash } from 'node:crypto'

/** Text that is already HTML. `html` does not escape this text. */
export class Markup {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

/** Builds HTML from a template. Escapes every value that is not `Markup`. Concatenates the items of a list. */
export function html(strings: TemplateStringsArray, ...values: (string | number | Markup | Markup[])[]): Markup {
  return new Markup(strings.reduce((page, part, index) => page + toMarkup(values[index - 1]!) + part))
}

function toMarkup(value: string | number | Markup | Markup[]): string {
  if (value instanceof Markup) return value.text
  if (Array.isArray(value)) return value.map(toMarkup).join('')
  return String(value).replace(/[&<>"']/g, character => `&#${character.charCodeAt(0)};`)
}

/**
 * Returns the Content-Security-Policy for a page that has no scripts and whose only style sheet is `style`.
 * @param formAction where the forms of the page may send their values
 */
export function pagePolicy(style: string, formAction: "'none'" | "'self'" = "'none'"): string {
  const hash = createHash('sha256').update(style).digest('base64')
  const otherDirectives = ["base-uri 'none'", `form-action ${formAction}`, "frame-ancestors 'none'"]
  return ["default-src 'none'", `style-src 'sha256-${hash}'`, ...otherDirectives].join('; ')
}

/** Puts values into a page in place of their names in braces, such as `{app_name}`. Escapes the values. */
export function fillPage(page: Buffer, values: Record<string, string>): Buffer {
  const text = page.toString().replace(/\{(\w+)\}/g, (name, key: string) => {
    return Object.hasOwn(values, key) ? toMarkup(values[key]!) : name
  })
  return Buffer.from(text)
}

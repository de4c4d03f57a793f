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

import type { OpenApiDocument } from '../src/http/openapi/document.ts'
import { SETTINGS } from '../src/settings.ts'

type Document = Pick<OpenApiDocument, 'paths'>

/**
 * Returns README.md with current tables of settings and endpoints.
 * @throws Error if README.md lacks one of these tables
 */
export function updateTables(readme: string, document: Document): string {
  return [settingsTable(), endpointsTable(document)].reduce(replaceTable, readme)
}

/** Replaces the table that has the same header row as the new table. */
function replaceTable(text: string, table: string): string {
  const header = table.slice(0, table.indexOf('\n'))
  const start = text.indexOf(`${header}\n`)
  if (start < 0) throw new Error(`README.md has no table with the header ${header}`)
  return text.slice(0, start) + table + text.slice(text.indexOf('\n\n', start) + 1)
}

function settingsTable(): string {
  const rows = Object.entries(SETTINGS).map(([name, { default: value, doc }]) => {
    return [`\`${name}\``, value && `\`${value}\``, doc]
  })
  return formatTable(['variable', 'default', 'meaning'], rows)
}

function endpointsTable({ paths }: Document): string {
  const rows = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, { security, summary }]) => {
      return [method.toUpperCase(), `\`${path}\``, callerName(security), summary]
    }),
  )
  return formatTable(['method', 'path', 'caller', 'purpose'], rows)
}

/**
 * Returns the text for the column `caller`. The text is `anyone` if the first security scheme of the endpoint is empty,
 * because such an endpoint accepts requests without a token.
 */
function callerName([scheme = {}]: Record<string, string[]>[]): string {
  if ('intakeKey' in scheme) return 'games service'
  return 'bearer' in scheme ? 'user' : 'anyone'
}

function formatTable(header: string[], rows: string[][]): string {
  return `${[header, header.map(() => '---'), ...rows].map(formatRow).join('\n')}\n`
}

function formatRow(cells: string[]): string {
  const isRule = cells.every(cell => cell === '---')
  return isRule ? `|${cells.join('|')}|` : `| ${cells.join(' | ')} |`
}

import type { Figures } from './measure.ts'

/** A row of the table that compares figures with goals. `work` describes what was measured. */
export type Row = { work: string; goal: string; measured: string; reached: boolean }

/** A workload, and the figures of each program for this workload. */
export type Comparison = { work: string; figures: Figures[] }

/**
 * The result of one part of the bench: rows that compare figures with goals, the figures of all programs, and notes.
 */
export type Part = { rows: Row[]; comparisons?: Comparison[]; notes?: string[] }

export type Goal = { min: number } | { max: number }

/**
 * Makes a row for the table of goals. Compares the rounded value with the goal. With the exact value, a row could show
 * a value that equals the goal and still count as a failure.
 */
export function goalRow(work: string, value: number, goal: Goal, show = formatNumber): Row {
  const [sign, bound] = 'min' in goal ? ['≥', goal.min] : ['≤', goal.max]
  const measured = show(value)
  const reached = measured === show(bound) || (sign === '≥' ? value > bound : value < bound)
  return { work, goal: `${sign} ${show(bound)}`, measured, reached }
}

/** Makes a row for a figure that cannot be measured on this machine. */
export function missingRow(work: string, goal: Goal, reason: string): Row {
  const [sign, bound] = 'min' in goal ? ['≥', goal.min] : ['≤', goal.max]
  return { work, goal: `${sign} ${formatNumber(bound)}`, measured: `not measured: ${reason}`, reached: false }
}

export function formatRatio(value: number): string {
  return `${value.toFixed(2)} ×`
}

export function formatNumber(value: number): string {
  if (Number.isNaN(value)) return '–'
  if (value === 0) return '0'
  if (value >= 100) return Math.round(value).toLocaleString('en').replaceAll(',', '\u202f')
  return value >= 10 ? value.toFixed(1) : value.toFixed(2)
}

function formatFigures({ perSecond, p50, p99, cpu, databaseCpu, busy }: Figures): string[] {
  return [...[perSecond, p50, p99, cpu, databaseCpu].map(formatNumber), `${Math.round(busy * 100)} %`]
}

/** Returns the tables and notes of the parts as Markdown. */
export function markdown(parts: Part[]): string {
  const rows = parts.flatMap(part => part.rows)
  const table = [
    '| workload | goal | measured | reached |',
    '|---|---|---|---|',
    ...rows.map(
      ({ work, goal, measured, reached }) => `| ${work} | ${goal} | ${measured} | ${reached ? 'yes' : '**no**'} |`,
    ),
  ]
  const comparisons = parts.flatMap(part => part.comparisons ?? [])
  const detail = [
    '| workload | program | answers/s | p50 ms | p99 ms | CPU µs/answer | PostgreSQL CPU µs/answer | generator busy |',
    '|---|---|--:|--:|--:|--:|--:|--:|',
    ...comparisons.flatMap(({ work, figures }) =>
      figures.map(each => `| ${[work, each.name, ...formatFigures(each)].join(' | ')} |`),
    ),
  ]
  const notes = parts.flatMap(part => part.notes ?? []).map(note => `- ${note}`)
  return [table.join('\n'), detail.join('\n'), notes.join('\n')].filter(text => text !== '').join('\n\n')
}

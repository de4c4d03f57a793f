import type { Figures } from './measure.ts'

/** A row of the table: what was measured beside what was to be reached. */
export type Row = { work: string; goal: string; measured: string; reached: boolean }

/** What one part of the bench has found: the rows, and the figures behind them. */
export type Part = { rows: Row[]; figures?: { work: string; of: Figures[] }[]; notes?: string[] }

/** A row whose figure is to be at least, or at most, the goal: to as many digits as are shown, or both would read the same. */
export function goalRow(work: string, value: number, goal: { least: number } | { most: number }, show = formatNumber): Row {
  const [sign, bound] = 'least' in goal ? ['≥', goal.least] : ['≤', goal.most]
  const measured = show(value)
  const reached = measured === show(bound) || (sign === '≥' ? value > bound : value < bound)
  return { work, goal: `${sign} ${show(bound)}`, measured, reached }
}

export function formatRatio(value: number): string {
  return `${value.toFixed(2)} ×`
}

export function formatNumber(value: number): string {
  if (Number.isNaN(value)) return '–'
  if (value >= 100) return Math.round(value).toLocaleString('en').replaceAll(',', '\u202f')
  return value >= 10 ? value.toFixed(1) : value.toFixed(2)
}

export function markdown(parts: Part[]): string {
  const rows = parts.flatMap(part => part.rows)
  const table = [
    '| work | to reach | measured | |',
    '|---|---|---|---|',
    ...rows.map(
      ({ work, goal, measured, reached }) => `| ${work} | ${goal} | ${measured} | ${reached ? 'yes' : '**no**'} |`,
    ),
  ]
  const figures = parts.flatMap(part => part.figures ?? [])
  const detail = [
    '| work | program | answers/s | p50 ms | p99 ms | CPU µs an answer | PostgreSQL CPU µs | generator busy |',
    '|---|---|--:|--:|--:|--:|--:|--:|',
    ...figures.flatMap(({ work, of }) =>
      of.map(
        each =>
          `| ${work} | ${each.name} | ${[each.perSecond, each.p50, each.p99, each.cpu, each.databaseCpu].map(formatNumber).join(' | ')} | ${Math.round(each.busy * 100)} % |`,
      ),
    ),
  ]
  const notes = parts.flatMap(part => part.notes ?? []).map(note => `- ${note}`)
  return [table.join('\n'), detail.join('\n'), notes.join('\n')].filter(text => text !== '').join('\n\n')
}

import type { Part } from './report.ts'

const WIDTH = 760
const BAR = 18
const GAP = 6
const GROUP_GAP = 22
/** The height of the line that names a workload, above its bars. */
const TITLE = 20
/** The width of the text behind the longest bar. */
const TEXT = 200
const COLOURS: Record<string, string> = {
  courtside: '#1f7a4d',
  ceiling: '#9aa5b1',
  'express-prisma': '#c98a2b',
  'better-auth': '#8a5fb0',
}

/**
 * Draws the answers per second of all programs as SVG. Each workload has its own scale, because the chart compares
 * programs only within a workload.
 */
export function drawChart(parts: Part[]): string {
  const comparisons = parts
    .flatMap(part => part.comparisons ?? [])
    .filter(({ figures }) => figures.length > 1 && figures.every(({ name }) => name in COLOURS))
  let y = 30
  const shapes: string[] = []
  for (const { work, figures } of comparisons) {
    shapes.push(`<text x="0" y="${y + 13}" font-weight="bold">${work}</text>`)
    y += TITLE
    const max = Math.max(...figures.map(({ perSecond }) => perSecond))
    for (const { name, perSecond } of figures) {
      const width = Math.max(1, Math.round((perSecond / max) * (WIDTH - TEXT)))
      shapes.push(
        `<rect x="0" y="${y}" width="${width}" height="${BAR}" fill="${COLOURS[name]}"/>`,
        `<text x="${width + 8}" y="${y + 13}">${name} · ${Math.round(perSecond)}/s</text>`,
      )
      y += BAR + GAP
    }
    y += GROUP_GAP - GAP
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y}" font-family="system-ui, sans-serif" font-size="13" role="img" aria-label="Answers per second, compared with a ceiling and peers">
<rect width="${WIDTH}" height="${y}" fill="#ffffff"/>
<g fill="#22272e">
<text x="0" y="14">Answers per second, measured together on one machine. A longer bar is better.</text>
${shapes.join('\n')}
</g>
</svg>
`
}

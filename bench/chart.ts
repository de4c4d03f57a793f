import type { Part } from './report.ts'

const WIDTH = 760
const BAR = 18
const GAP = 6
const GROUP_GAP = 22
const LABEL = 190
const COLOURS: Record<string, string> = {
  courtside: '#1f7a4d',
  ceiling: '#9aa5b1',
  'express-prisma': '#c98a2b',
  'better-auth': '#8a5fb0',
}

/** Answers a second of all programs, work by work, each work on a scale of its own: what counts is who is how far from whom. */
export function drawChart(parts: Part[]): string {
  const works = parts
    .flatMap(part => part.figures ?? [])
    .filter(({ of }) => of.length > 1 && of.every(({ name }) => name in COLOURS))
  let y = 30
  const shapes: string[] = []
  for (const { work, of } of works) {
    shapes.push(`<text x="0" y="${y + 13}" font-weight="bold">${work}</text>`)
    const most = Math.max(...of.map(({ perSecond }) => perSecond))
    for (const { name, perSecond } of of) {
      const width = Math.max(1, Math.round((perSecond / most) * (WIDTH - LABEL - 220)))
      shapes.push(
        `<rect x="${LABEL}" y="${y}" width="${width}" height="${BAR}" fill="${COLOURS[name]}"/>`,
        `<text x="${LABEL + width + 8}" y="${y + 13}">${name} · ${Math.round(perSecond)}/s</text>`,
      )
      y += BAR + GAP
    }
    y += GROUP_GAP - GAP
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y}" font-family="system-ui, sans-serif" font-size="13" role="img" aria-label="Answers a second, beside a ceiling and peers">
<rect width="${WIDTH}" height="${y}" fill="#ffffff"/>
<g fill="#22272e">
<text x="0" y="14">Answers a second, side by side on one machine; longer is better</text>
${shapes.join('\n')}
</g>
</svg>
`
}

import { readFile, writeFile } from 'node:fs/promises'
import { cpus, totalmem } from 'node:os'
import { drawChart } from './chart.ts'
import { markdown, type Part } from './report.ts'

const DOCUMENT = new URL('../docs/performance.md', import.meta.url)
const CHART = new URL('../docs/performance.svg', import.meta.url)

/**
 * Puts what was measured in its place in `docs/performance.md`, with the machine and the date, and draws the chart.
 * @param place the name between the document's marks
 */
export async function writeDocument(place: 'measured' | 'growth', parts: Part[], how: string): Promise<void> {
  const machine = `${cpus().length} cores (${cpus()[0]!.model}), ${Math.round(totalmem() / 1e9)} GB, Node ${process.versions.node}`
  const picture = place === 'measured' ? '![Answers a second, beside a ceiling and peers](performance.svg)\n\n' : ''
  const text = `${picture}Measured on ${new Date().toISOString().slice(0, 10)}: ${machine}; ${how}.\n\n${markdown(parts)}`
  const document = await readFile(DOCUMENT, 'utf8')
  const marks = new RegExp(`(<!-- ${place} -->).*(<!-- /${place} -->)`, 's')
  if (!marks.test(document)) throw new Error(`docs/performance.md has no place for ${place}`)
  await writeFile(
    DOCUMENT,
    document.replace(marks, (_, before, after) => `${before}\n${text}\n${after}`),
  )
  if (place === 'measured') await writeFile(CHART, drawChart(parts))
}

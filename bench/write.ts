import { readFile, writeFile } from 'node:fs/promises'
import { cpus, totalmem } from 'node:os'
import { drawChart } from './chart.ts'
import { markdown, type Part } from './report.ts'

const DOCUMENT = new URL('../docs/performance.md', import.meta.url)
const CHART = new URL('../docs/performance.svg', import.meta.url)

/**
 * Writes the results into `docs/performance.md`, together with the date and a description of the machine. If `place` is
 * `measured`, also draws the chart.
 * @param place the name in the two HTML comments between which the results are written
 * @param method a sentence that says how the figures were measured
 */
export async function writeDocument(place: 'measured' | 'growth', parts: Part[], method: string): Promise<void> {
  const cores = `${cpus().length} cores (${cpus()[0]!.model})`
  const machine = `${cores}, ${Math.round(totalmem() / 1e9)} GB of memory and Node ${process.versions.node}`
  const picture =
    place === 'measured' ? '![Answers per second, compared with a ceiling and peers](performance.svg)\n\n' : ''
  const date = new Date().toISOString().slice(0, 10)
  const text = `${picture}Measured on ${date} with ${machine}. ${method}\n\n${markdown(parts)}`
  const document = await readFile(DOCUMENT, 'utf8')
  const markers = new RegExp(`(<!-- ${place} -->).*(<!-- /${place} -->)`, 's')
  if (!markers.test(document)) throw new Error(`docs/performance.md has no markers named ${place}`)
  await writeFile(
    DOCUMENT,
    document.replace(markers, (_, before, after) => `${before}\n${text}\n${after}`),
  )
  if (place === 'measured') await writeFile(CHART, drawChart(parts))
}

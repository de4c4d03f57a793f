import assert from 'node:assert/strict'
import { anotherApp, type Harness } from './app.ts'

export const METRICS_TOKEN = 'Qm4tWz7rKx2vNp9s'

/** Parses the text format of Prometheus. @returns the values, by metric name and labels */
export function parseSamples(text: string): Map<string, number> {
  const lines = text.split('\n').filter(line => line !== '' && !line.startsWith('#'))
  return new Map(
    lines.map(line => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
  )
}

/** Requests `/metrics` from the app under test and parses the answer. */
export async function scrape(h: Harness) {
  const answer = await h.call('GET', '/metrics', { token: METRICS_TOKEN })
  assert.equal(answer.status, 200, answer.text)
  return parseSamples(answer.text)
}

/** Creates another app with the settings `env`. @returns the answer of this app to `GET /metrics` */
export async function scrapeOther(h: Harness, env: Record<string, string>, databaseUrl?: string) {
  const other = await anotherApp(h, env, { databaseUrl })
  return other.call('GET', '/metrics', { token: METRICS_TOKEN }).finally(other.close)
}

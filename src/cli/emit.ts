import { readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import { readConfig } from '../config.ts'
import { findSecrets } from './find.ts'
import { print, readArguments } from './usage.ts'

// "a batch of up to 100"
const BATCH = 100

const ABOUT = `Sends events to a running node, 100 at a time. FILE (- is standard input) holds a CloudEvent, an array of them, or
one a line. --url is the node's address, by default that of HOST and PORT; the key is the first of INTAKE_KEYS, else the
one in DATA_DIR. Exits with 1 when one was refused.`

type Result = { id: string | null; status: string; notifications?: number; message?: string }

/** `courtside emit FILE|-` */
export async function run(args: string[]): Promise<void> {
  const read = readArguments(args, 'emit FILE [--url=…] [--json]', ABOUT, { url: { type: 'string' } })
  if (!read) return
  const config = readConfig(process.env)
  const [file] = read.words as [string]
  const events = parse(file === '-' ? await text(process.stdin) : await readFile(file, 'utf8'))
  const address =
    read.values.url?.replace(/\/+$/, '') ??
    `http://${config.host.includes(':') ? `[${config.host}]` : config.host}:${config.port}`
  const key = (await findSecrets(config)).secrets.intakeKeys[0]!
  const results: Result[] = []
  for (let start = 0; start < events.length; start += BATCH) {
    results.push(...(await send(address, key, events.slice(start, start + BATCH))))
  }
  const line = ({ id, status, notifications, message }: Result) =>
    `${id ?? '-'}  ${status}  ${message ?? `${notifications} notification(s)`}`
  print(results, read.values.json, results.map(line).join('\n'))
  if (results.some(({ status }) => status === 'rejected')) process.exitCode = 1
}

function parse(source: string): unknown[] {
  try {
    return [JSON.parse(source)].flat()
  } catch {
    // Not one document, so one a line.
    return source
      .split('\n')
      .filter(line => line.trim() !== '')
      .map((line, index) => {
        try {
          return JSON.parse(line)
        } catch {
          throw new Error(`Line ${index + 1} is not JSON.`)
        }
      })
  }
}

async function send(address: string, key: string, events: unknown[]): Promise<Result[]> {
  const response = await fetch(`${address}/internal/v1/events`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/cloudevents-batch+json' },
    body: JSON.stringify(events),
  }).catch(() => {
    throw new Error(`No node answers at ${address}.`)
  })
  const answer = (await response.json().catch(() => ({}))) as { results?: Result[]; message?: string }
  if (response.ok && answer.results) return answer.results
  throw new Error(
    answer.message === undefined
      ? `What answers at ${address} is no node of Courtside: ${response.status}.`
      : `The node refused: ${response.status} ${answer.message}`,
  )
}

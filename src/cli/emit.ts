import { readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
// From its source: the client needn't be built for an operator's command.
import { splitIntoBatches } from '../../client/src/batches.ts'
import { readConfig } from '../config.ts'
import { resolveSecrets } from './resolve-database.ts'
import { print, readArguments } from './usage.ts'

const ABOUT = `Sends events to a running node, in batches. FILE (- is standard input) holds a CloudEvent, an array of them, or
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
  const key = (await resolveSecrets(config)).secrets.intakeKeys[0]!
  const results: Result[] = []
  for (const batch of splitIntoBatches(events.map(event => JSON.stringify(event)))) {
    results.push(...(await send(address, key, `[${batch}]`)))
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

/** Sends one batch. @throws with what to say when it isn't answered event by event */
async function send(address: string, key: string, body: string): Promise<Result[]> {
  const response = await fetch(`${address}/internal/v1/events`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/cloudevents-batch+json' },
    body,
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

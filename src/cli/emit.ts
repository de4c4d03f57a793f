import { readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
// This import uses the client's source, so the command works without a build of the client.
import { splitIntoBatches } from '../../client/src/batches.ts'
import { readConfig } from '../config.ts'
import { readSecret } from '../secrets.ts'
import { audited } from './audited.ts'
import { print, readArguments } from './usage.ts'

const ABOUT = `Sends events to a running node, in batches. FILE contains one CloudEvent, an array of CloudEvents, or one
CloudEvent per line. If FILE is -, the command reads standard input. --url is the address of the node. By default, the
address comes from HOST and PORT. The command uses the first key of INTAKE_KEYS. If INTAKE_KEYS is empty, the command
uses the intake key in DATA_DIR. The exit code is 1 if the node rejected an event.`

type Result = { id: string | null; status: string; notifications?: number; message?: string }

/** `courtside emit FILE|-` */
export async function run(args: string[]): Promise<void> {
  const parsed = readArguments(args, 'emit FILE [--url=…] [--json]', ABOUT, { url: { type: 'string' } })
  if (!parsed) return
  const config = readConfig(process.env)
  const [file] = parsed.positionals as [string]
  const events = parse(file === '-' ? await text(process.stdin) : await readFile(file, 'utf8'))
  const address =
    parsed.values.url?.replace(/\/+$/, '') ??
    `http://${config.host.includes(':') ? `[${config.host}]` : config.host}:${config.port}`
  const key = config.intakeKeys[0] ?? (await readSecret(config.dataDir, 'intake-key', console.error)).secret
  const results: Result[] = []
  await audited('emit', async () => {
    for (const batch of splitIntoBatches(events.map(event => JSON.stringify(event)))) {
      results.push(...(await send(address, key, `[${batch}]`)))
    }
  })
  const formatLine = ({ id, status, notifications, message }: Result) =>
    `${id ?? '-'}  ${status}  ${message ?? `${notifications} notification(s)`}`
  print(results, parsed.values.json, results.map(formatLine).join('\n'))
  if (results.some(({ status }) => status === 'rejected')) process.exitCode = 1
}

function parse(source: string): unknown[] {
  try {
    return [JSON.parse(source)].flat()
  } catch {
    // The input is not a single JSON document, so each line must be a JSON document.
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

/** Sends one batch. @throws if the response contains no results */
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
      ? `The server at ${address} is not a Courtside node: it answered ${response.status}.`
      : `The node refused the events: ${response.status} ${answer.message}`,
  )
}

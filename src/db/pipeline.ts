import type pg from 'pg'
import { ask, Client, type Config } from './client.ts'

type Line = { opening: Promise<Client> | undefined; inFlight: number; corked: boolean }

/**
 * A few connections on which a statement doesn't wait for the answers to those before it. What is asked in one turn of the event
 * loop leaves in one write and is read in one by PostgreSQL, which costs both of them about half.
 *
 * Answers come in the order of the statements, so this is for reads: one that waits for a lock would keep all behind it waiting.
 */
export class Pipeline {
  readonly #config: Config
  readonly #lines: Line[]

  constructor(config: Config, connections: number) {
    this.#config = config
    this.#lines = Array.from({ length: connections }, () => ({ opening: undefined, inFlight: 0, corked: false }))
  }

  /** How many statements are sent, or about to be, and not answered yet. */
  get inFlight(): number {
    return this.#lines.reduce((sum, line) => sum + line.inFlight, 0)
  }

  /** Runs one statement, that is its own transaction, where the fewest are before it. @throws what `pg.Client#query` throws */
  async query(statement: pg.QueryConfig): Promise<pg.QueryResult> {
    const line = this.#lines.reduce((least, each) => (each.inFlight < least.inFlight ? each : least))
    line.inFlight += 1
    try {
      line.opening ??= this.#open(line)
      const client = await line.opening
      hold(line, client)
      return await ask(client, statement)
    } finally {
      line.inFlight -= 1
    }
  }

  /** Closes the connections, once what was asked has been answered. */
  async end(): Promise<void> {
    await Promise.all(this.#lines.map(async ({ opening }) => (await opening?.catch(() => undefined))?.end()))
  }

  /** A connection that is lost, or can't be had, is forgotten: the next statement opens another. */
  async #open(line: Line): Promise<Client> {
    const client = new Client(this.#config)
    const forget = () => {
      line.opening = undefined
    }
    client.on('error', forget)
    client.on('end', forget)
    return client.connect().catch(error => {
      forget()
      throw error
    })
  }
}

/** Keeps what is written until this turn of the event loop is over, so that it leaves together. */
function hold(line: Line, { connection: { stream } }: Client): void {
  if (line.corked) return
  line.corked = true
  stream.cork()
  setImmediate(() => {
    line.corked = false
    stream.uncork()
  })
}

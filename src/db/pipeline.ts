import { EventEmitter } from 'node:events'
import type pg from 'pg'
import { ask, Client, type ConnectionConfig } from './client.ts'
import { isReadOnly } from './faults.ts'

type Line = { opening: Promise<Client> | undefined; inFlight: number; corked: boolean }

/** Of connections: how many there are, how many of them rest, and how many statements wait for one. */
export type Use = { total: number; idle: number; waiting: number }

/**
 * A few connections for statements that are each a transaction of its own. One more than there are connections isn't kept until
 * one is free, but sent to where the fewest are before it; and what is asked in one turn of the event loop leaves in one write and
 * is read in one by PostgreSQL. That costs both of them about half.
 *
 * Answers come in the order of the statements: one that waits for a lock keeps those behind it waiting.
 *
 * Emits `connect` with each new client, as pg's pool does.
 */
export class Pipeline extends EventEmitter<{ connect: [Client] }> {
  readonly #config: ConnectionConfig
  readonly #lines: Line[]
  #ended = false

  constructor(config: ConnectionConfig, connections: number) {
    super()
    this.#config = config
    this.#lines = Array.from({ length: connections }, () => ({ opening: undefined, inFlight: 0, corked: false }))
  }

  use(): Use {
    const open = this.#lines.filter(({ opening }) => opening)
    return {
      total: open.length,
      idle: open.filter(({ inFlight }) => inFlight === 0).length,
      waiting: this.#lines.reduce((sum, { inFlight }) => sum + Math.max(0, inFlight - 1), 0),
    }
  }

  /** Runs a statement. @throws what `pg.Client#query` throws */
  async query(statement: pg.QueryConfig): Promise<pg.QueryResult> {
    if (this.#ended) throw new Error('Cannot use a pipeline that has ended')
    const line = this.#lines.reduce((least, each) => (each.inFlight < least.inFlight ? each : least))
    line.inFlight += 1
    try {
      const client = await (line.opening ?? this.#open(line))
      hold(line, client)
      return await ask(client, statement).catch(error => {
        if (isReadOnly(error)) void client.end()
        throw error
      })
    } finally {
      line.inFlight -= 1
    }
  }

  /** Closes the connections, once what was asked has been answered. */
  async end(): Promise<void> {
    this.#ended = true
    await Promise.all(this.#lines.map(async ({ opening }) => (await opening?.catch(() => undefined))?.end()))
  }

  /** A connection that is lost, or can't be had, is forgotten: the next statement opens another. */
  #open(line: Line): Promise<Client> {
    const client = new Client(this.#config)
    const opening = client.connect()
    const forget = () => {
      if (line.opening === opening) line.opening = undefined
    }
    client.on('error', forget)
    client.on('end', forget)
    opening.then(() => this.emit('connect', client), forget)
    line.opening = opening
    return opening
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

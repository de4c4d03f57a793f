import pg from 'pg'

const PROBE_MS = 2_000

type Host = { host: string; port: number }

/**
 * pg's client, for a URL that may name several hosts, `postgres://user:password@one:5432,two/db`: it connects to the first that
 * is reached and is not in recovery, so that after a fail-over new connections find the new primary. With one host it is pg's
 * own. Pool, queue and migrations all use this one.
 */
export class Client extends pg.Client {
  readonly #hosts: Host[]
  readonly #config: pg.ClientConfig

  constructor(config: pg.ClientConfig) {
    const { hosts, url } = splitHosts(config.connectionString!)
    super({ ...config, connectionString: url })
    this.#hosts = hosts
    this.#config = { ...config, connectionString: url }
  }

  override connect(): Promise<this>
  override connect(callback: (error: Error) => void): void
  override connect(callback?: (error: Error) => void): Promise<this> | undefined {
    const connected = this.#connect()
    if (!callback) return connected
    connected.then(() => callback(undefined as unknown as Error), callback)
    return undefined
  }

  async #connect(): Promise<this> {
    if (this.#hosts.length > 1) Object.assign(this, await this.#primary())
    await super.connect()
    return this
  }

  async #primary(): Promise<Host> {
    let fault: unknown
    for (const host of this.#hosts) {
      const probe = new pg.Client({ ...this.#config, connectionTimeoutMillis: PROBE_MS })
      probe.on('error', () => {})
      Object.assign(probe, host)
      try {
        await probe.connect()
        const { rows } = await probe.query('select pg_is_in_recovery() as standby')
        if (!rows[0].standby) return host
      } catch (error) {
        fault = error
      } finally {
        await probe.end().catch(() => {})
      }
    }
    throw fault ?? Object.assign(new Error('every host is a standby'), { code: 'EHOSTUNREACH' })
  }
}

/** The hosts of a URL, and the same URL with the first alone, which is what pg can read. */
export function splitHosts(url: string): { hosts: Host[]; url: string } {
  const [, before, list, after] = /^(\w+:\/\/(?:[^@/]*@)?)([^/?]*)(.*)$/s.exec(url)!
  const names = list!.split(',')
  const hosts = names.map(name => {
    const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:]*))(?::(\d+))?$/.exec(name)!
    return { host: (bracketed ?? plain)!, port: Number(port ?? 5432) }
  })
  return { hosts, url: `${before}${names[0]}${after}` }
}

import { createHmac, createSecretKey, type KeyObject, randomBytes } from 'node:crypto'
import type { Database, Sql } from '../db/sql.ts'
import type { Keys } from '../keys.ts'
import { findNetwork } from './network.ts'

// The name to which the sealed key is bound. The name is not a uuid, so a sealed code cannot take the key's place.
const SEAL_ID = 'network key'

const HASH_BYTES = 16

export type Networks = ReturnType<typeof createNetworks>

type Row = { id: string; sealed: string }

/**
 * Creates the functions that return keyed hashes of networks and of other properties of clients. The database stores
 * networks only as these hashes. The key of the hashes is random, and all processes share it. The first process makes
 * the key and stores it in the table `network_key`, sealed under `JWT_SECRET`.
 *
 * A process whose secrets do not open the stored key uses another key, in another row, and reports this through
 * `onUnopened`. It does not replace the stored key, because other processes use this key. It does not refuse to start,
 * because an operator whose secret leaked must be able to replace the secret immediately. With the other key, the
 * counts of all networks start again at zero. If the process gets the old secret back, it uses the old key again.
 */
export function createNetworks(sql: Database, keys: Keys, onUnopened: () => void) {
  let loading: Promise<KeyObject> | undefined

  /** Loads the key once. If the database cannot be reached, the next call tries again. */
  function load(): Promise<KeyObject> {
    loading ??= loadKey(sql, keys, onUnopened).catch(error => {
      loading = undefined
      throw error
    })
    return loading
  }

  async function hash(label: string, text: string): Promise<Buffer> {
    return createHmac('sha256', await load())
      .update(`${label}:${text}`)
      .digest()
      .subarray(0, HASH_BYTES)
  }

  return {
    /**
     * Loads the key, and seals it under the newest secret. Call this at the start of a process. Otherwise a process
     * would load the key at its first request. A process with the secrets `old,new` could then seal the key under the
     * old secret after the last step of a rotation began.
     */
    async prepare(): Promise<void> {
      await load()
    },

    /** Returns the keyed hash of the network of a client, in 16 bytes. @param client as for `findNetwork` */
    hashNetwork: (client: string): Promise<Buffer> => hash('network', findNetwork(client)),

    /** Returns a keyed hash of another property of a client, such as its user agent, in 16 bytes. */
    hashText: (text: string): Promise<Buffer> => hash('text', text),
  }
}

async function loadKey(sql: Database, keys: Keys, onUnopened: () => void): Promise<KeyObject> {
  const found = openFirst(keys, await readRows(sql))
  if (found && keys.isNewest(SEAL_ID, found.sealed)) return toKey(found.text)
  return sql.begin(async tx => {
    // Without this lock, two processes that start together could both make a key.
    await tx`lock table network_key in share row exclusive mode`
    const rows = await readRows(tx)
    const opened = openFirst(keys, rows)
    if (opened) {
      await tx`update network_key set sealed = ${keys.seal(SEAL_ID, opened.text)} where id = ${opened.id}`
      return toKey(opened.text)
    }
    if (rows.length > 0) onUnopened()
    const text = randomBytes(32).toString('base64url')
    await tx`insert into network_key (sealed) values (${keys.seal(SEAL_ID, text)})`
    return toKey(text)
  })
}

function readRows(sql: Sql | Database): Promise<Row[]> {
  return sql<Row>`select id, sealed from network_key order by created_at, id`
}

/** Returns the first row that a secret opens. All processes with the same secrets choose the same row. */
function openFirst(keys: Keys, rows: Row[]): (Row & { text: string }) | undefined {
  for (const row of rows) {
    const text = keys.open(SEAL_ID, row.sealed)
    if (text !== undefined) return { ...row, text }
  }
  return undefined
}

function toKey(text: string): KeyObject {
  return createSecretKey(Buffer.from(text, 'base64url'))
}

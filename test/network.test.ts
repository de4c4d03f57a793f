import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { deriveKeys } from '../src/keys.ts'
import { findNetwork } from '../src/limits/network.ts'
import { createNetworks } from '../src/limits/network-key.ts'
import { harness } from './support/app.ts'
import { testDatabase } from './support/database.ts'

const [OLD, NEW, OTHER] = [
  'k8Jd2mQx7vR4tY9wB3nH6sL1pF5gZ0cA',
  'uX7eWq3Zr9Tn5Yk1Mb8Vc4Lf6Hd2Gs0P',
  'aB1cD2eF3gH4iJ5kL6mN7oP8qR9sT0uV',
]
const h = harness()

describe('the network of a client', () => {
  const networks: [string, string][] = [
    ['192.0.2.7', '192.0.2.0/24'],
    ['192.0.2.255', '192.0.2.0/24'],
    ['192.0.3.7', '192.0.3.0/24'],
    ['::ffff:192.0.2.7', '192.0.2.0/24'],
    ['2001:db8:1:2::/64', '2001:db8:1::/48'],
    ['2001:db8:1:ffff:1:2:3:4', '2001:db8:1::/48'],
    ['2001:db8:2::1', '2001:db8:2::/48'],
    ['127.0.0.1', 'loopback'],
    ['127.9.9.9', 'loopback'],
    ['::1', 'loopback'],
    ['0:0:0:0::/64', 'loopback'],
    ['::ffff:127.0.0.1', 'loopback'],
  ]
  for (const [client, network] of networks) {
    test(`the client ${client} belongs to the network ${network}`, () => assert.equal(findNetwork(client), network))
  }
})

describe('the keyed hash of a network', () => {
  const open = (secrets: string[], sql = h.database.sql) => {
    const unopened: string[] = []
    const networks = createNetworks(sql, deriveKeys(secrets), () => unopened.push(secrets[0]!))
    return { ...networks, unopened, hash: async () => (await networks.hashNetwork('192.0.2.7')).toString('hex') }
  }
  const rows = () => h.database.sql<{ sealed: string }>`select sealed from network_key order by created_at, id`

  test('addresses of one network have one hash, and two networks have different hashes', async () => {
    const { hashNetwork } = h.ctx.networks
    const [one, same, next] = await Promise.all(['192.0.2.7', '192.0.2.8', '192.0.3.7'].map(hashNetwork))
    assert.deepEqual(one, same)
    assert.notDeepEqual(one, next)
    assert.equal(one!.length, 16)
  })

  test('twenty processes that start together make one key', async () => {
    for (let round = 0; round < 20; round += 1) {
      await h.database.sql`delete from network_key`
      const hashes = await Promise.all(Array.from({ length: 20 }, () => open([OLD]).hash()))
      assert.equal(new Set(hashes).size, 1)
      assert.equal((await rows()).length, 1)
    }
  })

  test('a rotation in three steps keeps the hashes, and seals the key under the new secret', async () => {
    await h.database.sql`delete from network_key`
    const before = await open([OLD]).hash()
    for (const secrets of [[OLD, NEW], [NEW, OLD], [NEW]]) assert.equal(await open(secrets).hash(), before)
    const [row, ...more] = await rows()
    assert.deepEqual(more, [])
    assert.equal(deriveKeys([OLD]).open('network key', row!.sealed), undefined)
  })

  test('a process that cannot open the key reports this, uses another key, and leaves the stored key alone', async () => {
    await h.database.sql`delete from network_key`
    const first = open([OLD])
    const hash = await first.hash()
    const [stored] = await rows()
    const stranger = open([OTHER])
    assert.notEqual(await stranger.hash(), hash)
    assert.deepEqual([first.unopened, stranger.unopened], [[], [OTHER]])
    assert.deepEqual((await rows())[0], stored)
    assert.equal(await open([OTHER, OLD]).hash(), hash)
    const again = open([OTHER])
    await again.hash()
    assert.equal((await rows()).length, 2)
  })

  test('the key is not readable in the database', async () => {
    await h.database.sql`delete from network_key`
    await open([OLD]).hash()
    const [row] = await rows()
    const key = deriveKeys([OLD]).open('network key', row!.sealed)!
    assert.equal(Buffer.from(key, 'base64url').length, 32)
    assert.ok(!row!.sealed.includes(key))
  })

  test('if the database has no table for the key, a later call tries again', async () => {
    const database = await testDatabase()
    await database.sql`alter table network_key rename to hidden`
    const networks = open([OLD], database.sql)
    await assert.rejects(networks.hash())
    await database.sql`alter table hidden rename to network_key`
    assert.match(await networks.hash(), /^[0-9a-f]{32}$/)
    await database.drop()
  })
})

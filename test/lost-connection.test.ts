import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { test } from 'node:test'
import { connect } from '../src/db/sql.ts'

/** Returns a message of PostgreSQL's protocol. */
function message(type: string, ...parts: (string | Buffer)[]): Buffer {
  const body = Buffer.concat(parts.map(part => Buffer.from(part as string)))
  const length = Buffer.alloc(4)
  length.writeInt32BE(body.length + 4)
  return Buffer.concat([Buffer.from(type), length, body])
}

test('a server that shuts down in the packet that ends the login does not end the process', async t => {
  const [authenticated, ready] = [message('R', Buffer.alloc(4)), message('Z', 'I')]
  const shutdown = message('E', 'SFATAL\0C57P01\0Mterminating connection due to unexpected postmaster exit\0\0')
  let connections = 0
  const server = createServer(socket => {
    connections += 1
    socket.on('error', () => {})
    socket.once('data', () => socket.end(Buffer.concat([authenticated, ready, shutdown])))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const sql = connect(`postgres://user:password@127.0.0.1:${(server.address() as AddressInfo).port}/database`)
  t.after(async () => {
    await sql.close()
    server.close()
  })
  for (let round = 0; round < 20; round += 1) {
    await assert.rejects(sql`select 1`, { code: 'unavailable' })
    await assert.rejects(
      sql.begin(tx => tx`select 1`),
      { code: 'unavailable' },
    )
  }
  assert.ok(connections >= 20)
})

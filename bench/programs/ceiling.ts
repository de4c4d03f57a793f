// The ceiling is a minimal server with which the bench compares the service. It uses only node:http and pg. It reads
// with the statements of the service. For a write, it runs the fewest statements that keep the guarantee
// (`ceiling-writes.ts`). It does not check its input, write a log or handle errors, and it sends only the headers that
// HTTP requires. It reads the token, but does not verify the signature.
import { createServer, type IncomingMessage } from 'node:http'
import { toUser } from '../../src/accounts/schema.ts'
import * as users from '../../src/accounts/users.ts'
import { KEY_LOOKUPS, PLANNER_OPTIONS } from '../../src/db/connection-config.ts'
import * as notifications from '../../src/notifications/notifications.ts'
import { createBareSql } from './bare-sql.ts'
import { createWriteCeiling } from './ceiling-writes.ts'

const sql = createBareSql(process.env.DATABASE_URL!, 5, PLANNER_OPTIONS)
const writes = createWriteCeiling(
  createBareSql(process.env.DATABASE_URL!, Number(process.env.WRITE_CONNECTIONS ?? 5), KEY_LOOKUPS),
)

async function answer(request: IncomingMessage): Promise<unknown> {
  const url = request.url!
  if (url === '/api/v1/notifications/unread-count') {
    return { unread_count: await notifications.countUnread(sql, readUserId(request)) }
  }
  if (url.startsWith('/api/v1/notifications?page=')) return page(readUserId(request), Number(url.slice(27)))
  if (url.endsWith('/read')) return writes.markRead(readUserId(request), Number(url.slice(22, -5)))
  if (request.method === 'DELETE') return writes.remove(readUserId(request), Number(url.slice(22)))
  if (url === '/api/v1/auth/me') return { data: toUser((await users.find(sql, readUserId(request)))!) }
  if (url === '/api/v1/auth/request-otp') return writes.request(await readJson(request))
  if (url === '/api/v1/auth/verify-otp') return writes.verify(await readJson(request))
  if (url === '/mailed') return writes.mailed()
  return {}
}

async function page(userId: number, page: number) {
  const { json, total, unreadCount } = await notifications.list(sql, userId, { page, perPage: 20 })
  const last_page = Math.max(1, Math.ceil(total / 20))
  const meta = { current_page: page, last_page, per_page: 20, total, unread_count: unreadCount }
  return `{"data":${json},"meta":${JSON.stringify(meta)}}`
}

function readUserId(request: IncomingMessage): number {
  return Number(JSON.parse(Buffer.from(request.headers.authorization!.split('.')[1]!, 'base64url').toString()).sub)
}

async function readJson(request: IncomingMessage): Promise<any> {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part)
  return JSON.parse(Buffer.concat(parts).toString())
}

createServer(async (request, response) => {
  const answered = await answer(request)
  const body = typeof answered === 'string' ? answered : JSON.stringify(answered)
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) })
  response.end(body)
}).listen(Number(process.env.PORT), '127.0.0.1')

// Node writes a profile only if the process calls `exit`, not if a signal kills it.
process.on('SIGTERM', () => process.exit())

// A server that always gives the same answer. Only the load generator limits the throughput of this server.
import { createServer } from 'node:http'

const body = JSON.stringify({ unread_count: 12 })
createServer((_, response) => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length })
  response.end(body)
}).listen(Number(process.env.PORT), '127.0.0.1')

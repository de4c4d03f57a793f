// A server that always gives the same answer. The load generator limits its throughput, so this measures the generator.
import { createServer } from 'node:http'

const body = JSON.stringify({ unread_count: 12 })
createServer((_, response) => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length })
  response.end(body)
}).listen(Number(process.env.PORT), '127.0.0.1')

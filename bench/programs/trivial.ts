// The least a server can do: the same answer to everybody. How often it can be asked is what the generator can do at most.
import { createServer } from 'node:http'

const body = JSON.stringify({ unread_count: 12 })
createServer((_, response) => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length })
  response.end(body)
}).listen(Number(process.env.PORT), '127.0.0.1')

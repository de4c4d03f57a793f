#!/usr/bin/env node
// Exits with 0 if `/readyz` of the service with the settings HOST and PORT answers 200, otherwise with 1.
// `check-ready.js 60` waits up to 60 s for this answer. The HEALTHCHECK of the image and the systemd unit use it.
import { setTimeout as delay } from 'node:timers/promises'

// An unset or blank setting has its default, as in src/config.ts.
const HOST = process.env.HOST?.trim() || '127.0.0.1'
const PORT = process.env.PORT?.trim() || '3000'
// A service that listens on all addresses also listens on the loopback address.
const host = { '0.0.0.0': '127.0.0.1', '::': '[::1]' }[HOST] ?? (HOST.includes(':') ? `[${HOST}]` : HOST)
const deadline = Date.now() + Number(process.argv[2] ?? 0) * 1_000

let answer
do {
  answer = await fetch(`http://${host}:${PORT}/readyz`, { signal: AbortSignal.timeout(4_000) }).then(
    ({ status }) => status,
    error => error.cause?.code ?? error.name,
  )
  if (answer === 200) process.exit(0)
  await delay(200)
} while (Date.now() < deadline)
console.error(`/readyz of ${host}:${PORT}: ${answer}`)
process.exit(1)

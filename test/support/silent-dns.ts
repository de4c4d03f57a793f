// Runs in a separate network namespace, in which the only DNS server never replies. Starts a service on the folder
// argv[2], stops it while it looks up the name of its mail server, and prints its exit code and the time until its
// exit.
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { newEmail, profile } from './scenario.ts'
import { startService } from './service.ts'
import { waitUntil } from './wait-until.ts'

/** The address in `resolv.conf` of silent-dns.test.ts. */
const SILENT_SERVER = '127.0.0.9'

const silent = createSocket('udp4').bind(53, SILENT_SERVER)
await once(silent, 'listening')
let queries = 0
silent.on('message', () => {
  queries += 1
})
const service = await startService({
  DATA_DIR: process.argv[2]!,
  SMTP_URL: 'smtp://mail.club.example',
  MAIL_FROM: 'Club <no-reply@club.example>',
  THROTTLE_REQUEST_OTP: '1000',
})
for (let count = 0; count < 6; count += 1) {
  await fetch(`${service.address}/api/v1/auth/request-otp`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(profile(newEmail())),
  })
}
await waitUntil(() => queries > 0)
const stoppedAtMs = performance.now()
const code = await service.stop()
silent.close()
console.log(JSON.stringify({ code, seconds: (performance.now() - stoppedAtMs) / 1000 }))

// better-auth on PostgreSQL, with its plugins for codes by mail and for bearer tokens. Its settings match the settings
// of the service: codes have 4 digits, are valid for 15 minutes and 5 attempts, and are stored as hashes.
import { createServer } from 'node:http'
import { betterAuth } from 'better-auth'
import { getMigrations } from 'better-auth/db/migration'
import { toNodeHandler } from 'better-auth/node'
import { bearer, emailOTP } from 'better-auth/plugins'
import pg from 'pg'
import { sendMails } from './mails.ts'

const mails = sendMails(async () => {})

const auth = betterAuth({
  baseURL: `http://127.0.0.1:${process.env.PORT}`,
  secret: process.env.JWT_SECRET!,
  database: new pg.Pool({ connectionString: process.env.DATABASE_URL!, max: 5, idleTimeoutMillis: 0 }),
  telemetry: { enabled: false },
  // better-auth counts every request, as the service does. The limit is so high that better-auth refuses no request.
  // better-auth keeps the counters in memory.
  rateLimit: { enabled: true, max: 1_000_000, customRules: { '/*': { window: 60, max: 1_000_000 } } },
  plugins: [
    bearer(),
    emailOTP({
      otpLength: 4,
      expiresIn: 15 * 60,
      allowedAttempts: 5,
      storeOTP: 'hashed',
      sendVerificationOTP: async ({ email, otp }) => {
        mails.add({ id: email, email, code: otp })
      },
    }),
  ],
})

await (await getMigrations(auth.options)).runMigrations()
const handle = toNodeHandler(auth)

createServer((request, response) => {
  if (request.url === '/readyz') return response.end('{}')
  if (request.url === '/mailed') return response.end(JSON.stringify(mails.take()))
  return handle(request, response)
}).listen(Number(process.env.PORT), '127.0.0.1')

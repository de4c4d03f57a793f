import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { INTAKE_KEY, JWT_SECRET, settingsFor } from './support/app.ts'
import { testDatabase } from './support/database.ts'
import { createClient, type ReadCode, readCodeFrom, runJourney } from './support/journey.ts'
import { courtside, readMailbox, type Service, startService } from './support/service.ts'
import { smtpServer } from './support/smtp.ts'
import { waitUntil } from './support/wait-until.ts'

/** Asserts that the log contains no secret, no token and no e-mail address. */
function assertNothingSecretLogged(service: Service, secrets: string[]): void {
  const log = service.lines.join('\n')
  assert.notEqual(log, '')
  for (const secret of [...secrets, 'marie@example.com', 'eyJ']) assert.equal(log.includes(secret), false)
}

describe('the journey', () => {
  test('a user can sign up, read a notification and log out on a service without any settings', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'courtside-journey-'))
    const service = await startService({ DATA_DIR: dataDir })
    try {
      const intakeKey = (await readFile(service.listening.intakeKeyFile!, 'utf8')).trim()
      assert.equal((await stat(service.listening.intakeKeyFile!)).mode & 0o777, 0o600)
      const readCode: ReadCode = async (email, count = 1) => {
        let code: string | undefined
        await waitUntil(async () => {
          const mails = (await readMailbox(service)).filter(mail => mail.to === email)
          code = /^\d{4}$/m.exec(mails[0]?.text ?? '')?.[0]
          return mails.length >= count
        })
        return code!
      }
      await runJourney(service, intakeKey, readCode)
      assertNothingSecretLogged(service, [intakeKey])
      assert.equal(await service.stop(), 0)

      // After a restart the account still exists, so a sign-up with the same address is refused.
      const again = await startService({ DATA_DIR: dataDir })
      const answer = await createClient(again.address)('POST', '/api/v1/auth/request-otp', {
        body: { email: 'marie@example.com', first_name: 'P', last_name: 'P', accept_cgu: true },
      })
      assert.equal(answer.status, 422)
      assert.equal(await again.stop(), 0)
    } finally {
      await service.stop()
      await rm(dataDir, { recursive: true, force: true })
    }
  })

  test('a user can sign up, read a notification and log out with an external database and a mail server', async () => {
    const database = await testDatabase()
    const smtp = await smtpServer()
    const service = await startService({
      ...settingsFor(database.url, smtp.url),
      MAIL_FROM: 'Padel Club <hello@club.example>',
    })
    try {
      await runJourney(service, INTAKE_KEY, readCodeFrom(smtp))
      for (const { from } of smtp.mails) assert.equal(from, 'hello@club.example')
      assert.equal((await fetch(`${service.address}/dev/mailbox.json`)).status, 404)
      assertNothingSecretLogged(service, [INTAKE_KEY, JWT_SECRET])
    } finally {
      assert.equal(await service.stop(), 0)
      await smtp.close()
      await database.drop()
    }
  })
})

describe('the command line', () => {
  test('courtside serve with faulty settings lists every fault and exits with 78', async () => {
    const { code, errors } = await courtside(['serve'], { PORT: 'x', ROLE: 'boss' })
    assert.equal(code, 78)
    assert.match(errors, /ROLE: .*\n.*PORT: /)
  })

  test('an unknown command prints the usage and exits with 64', async () => {
    const { code, errors } = await courtside(['fly'])
    assert.equal(code, 64)
    assert.match(errors, /serve/)
  })

  test('courtside secret prints 32 random bytes as base64url', async () => {
    const { output } = await courtside(['secret', '--json'])
    assert.match(JSON.parse(output).secret, /^[\w-]{43}$/)
  })

  test('if its port is in use, courtside serve exits with 1 and an error that names the port', async () => {
    const database = await testDatabase()
    const env = settingsFor(database.url)
    const service = await startService(env)
    const port = new URL(service.address).port
    const { code, output, errors } = await courtside(['serve'], { ...env, PORT: port })
    assert.equal(code, 1)
    assert.match(output + errors, new RegExp(`${port}`))
    assert.equal(await service.stop(), 0)
    await database.drop()
  })
})

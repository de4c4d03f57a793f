import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { suite, test } from 'node:test'
import { AUDIT_EVENTS } from '../src/audit.ts'
import { harness } from './support/app.ts'
import { newEmail, otherThan, payloadOf, profile, queuedCode, signIn, signUp } from './support/scenario.ts'

const METRICS_TOKEN = 'Qm4tWz7rKx2vNp9s'
const h = harness({ METRICS_TOKEN })

/** The lines of the audit trail that `work` leaves behind, with the names of their levels. */
async function trail(work: () => Promise<unknown>) {
  const before = h.logged.length
  await work()
  const lines = h.logged.slice(before).filter(line => line.audit !== undefined)
  return lines.map(({ level, audit, user_id, session_id, client }) => ({
    level: { 30: 'info', 40: 'warn' }[level as number],
    audit,
    user_id,
    session_id,
    client,
  }))
}

/** The line about whom a token is of. */
function line(audit: keyof typeof AUDIT_EVENTS, token?: string) {
  const { sub, sid } = token === undefined ? {} : payloadOf(token)
  const who = { user_id: sub && Number(sub), session_id: sid }
  return { level: AUDIT_EVENTS[audit], audit, ...who, client: '127.0.0.1' }
}

function ask(email: string) {
  return h.call('POST', '/api/v1/auth/request-otp', { body: { email } })
}

suite('the audit trail', () => {
  test('a sign-up, then a sign-in', async () => {
    const email = newEmail()
    let first = ''
    let second = ''
    const lines = await trail(async () => {
      first = (await signUp(h, email)).token
      second = (await signIn(h, email)).token
    })
    assert.deepEqual(lines, [line('sign_up', first), line('sign_in', second)])
  })

  test('a wrong code, for an address with an account and without one, in the same words', async () => {
    const { email } = await signUp(h)
    h.clock.advance(60_000)
    await ask(email)
    const wrong = otherThan(await queuedCode(h, email))
    for (const tried of [email, newEmail()]) {
      const lines = await trail(() =>
        h.call('POST', '/api/v1/auth/verify-otp', { body: { email: tried, code: wrong } }),
      )
      assert.deepEqual(lines, [line('sign_in_failed')])
    }
  })

  test('the line has the id of the answer, and of an IPv6 client the network', async () => {
    const before = h.logged.length
    const answer = await h.call('POST', '/api/v1/auth/verify-otp', {
      body: { email: newEmail(), code: '0000' },
      remoteAddress: '2001:db8:1:2:3:4:5:6',
    })
    const [logged] = h.logged.slice(before).filter(line => line.audit)
    assert.deepEqual([logged!.reqId, logged!.client], [answer.headers['x-request-id'], '2001:db8:1:2::/64'])
  })

  test('logout, and a refresh after it', async () => {
    const { token } = await signUp(h)
    const lines = await trail(async () => {
      await h.call('POST', '/api/v1/auth/logout', { token })
      await h.call('POST', '/api/v1/auth/refresh', { token })
    })
    assert.deepEqual(lines, [line('logout', token), line('refresh_refused', token)])
  })

  test('a dead token is refreshed: a warning with the session that is revoked', async () => {
    const { token: old } = await signUp(h)
    const renewed = await h.call('POST', '/api/v1/auth/refresh', { token: old })
    await h.call('GET', '/api/v1/auth/me', { token: renewed.body.access_token })
    h.clock.advance(31_000)
    const lines = await trail(async () => {
      assert.equal((await h.call('POST', '/api/v1/auth/refresh', { token: old })).status, 401)
    })
    assert.deepEqual(lines, [{ ...line('refresh_reuse', old), level: 'warn' }])
  })

  test('an account is deleted, after a wrong code', async () => {
    const { email, token } = await signUp(h)
    h.clock.advance(60_000)
    await ask(email)
    const code = await queuedCode(h, email)
    const lines = await trail(async () => {
      for (const sent of [otherThan(code), code]) {
        await h.call('DELETE', '/api/v1/auth/me', { token, body: { code: sent } })
      }
    })
    assert.deepEqual(lines, [line('deletion_failed', token), line('deletion', token)])
  })

  test('keys that are none, tried on the doors of services and operators; nothing of them is kept', async () => {
    const { token } = await signUp(h)
    const lines = await trail(async () => {
      for (const [method, url] of [
        ['POST', '/internal/v1/events'],
        ['GET', '/metrics'],
      ] as const) {
        await h.call(method, url)
        await h.call(method, url, { token: 'zq-guessed-key' })
      }
      await h.call('POST', '/internal/v1/events', { token })
    })
    assert.deepEqual(lines, [line('key_refused'), line('key_refused'), line('key_refused', token)])
    assert.doesNotMatch(JSON.stringify(h.logged), /zq-guessed-key/)
  })

  test('what succeeds otherwise, or is refused before anything is tried, leaves no line', async () => {
    const { token } = await signUp(h)
    const lines = await trail(async () => {
      const { body } = await h.call('POST', '/api/v1/auth/refresh', { token })
      await h.call('GET', '/api/v1/auth/me', { token: body.access_token })
      await h.call('GET', '/api/v1/auth/me', { token: 'rubbish' })
      await h.call('POST', '/api/v1/auth/refresh', { token: 'rubbish' })
      await h.call('POST', '/api/v1/auth/verify-otp', { body: { email: newEmail(), code: '12' } })
      await h.call('POST', '/api/v1/auth/request-otp', { body: profile(newEmail()) })
    })
    assert.deepEqual(lines, [])
  })

  test('docs/operations.md lists its events with their levels, and no others', async () => {
    const text = await readFile(new URL('../docs/operations.md', import.meta.url), 'utf8')
    const [, section] = text.split('### The audit trail\n')
    const rows = [...section!.split(/^##/m)[0]!.matchAll(/^\| `(\w+)` \| (info|warn) \|/gm)]
    assert.deepEqual(Object.fromEntries(rows.map(([, name, level]) => [name, level])), AUDIT_EVENTS)
  })
})

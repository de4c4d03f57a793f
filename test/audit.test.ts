import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { suite, test } from 'node:test'
import { AUDIT_EVENTS } from '../src/audit.ts'
import { harness } from './support/app.ts'
import { newSubscription } from './support/push.ts'
import { newEmail, otherThan, profile, queuedCode, readPayload, signIn, signUp } from './support/scenario.ts'

const METRICS_TOKEN = 'Qm4tWz7rKx2vNp9s'
const h = harness({ METRICS_TOKEN })

/** Runs `work`. @returns the audit lines that the service logs during `work`; each line has the name of its level */
async function auditTrail(work: () => Promise<unknown>) {
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

/** Returns the expected audit line. If `token` is given, the line names the user and the session of this token. */
function line(audit: keyof typeof AUDIT_EVENTS, token?: string) {
  const { sub, sid } = token === undefined ? {} : readPayload(token)
  return { level: AUDIT_EVENTS[audit], audit, user_id: sub && Number(sub), session_id: sid, client: '127.0.0.1' }
}

function requestCode(email: string) {
  return h.call('POST', '/api/v1/auth/request-otp', { body: { email } })
}

suite('the audit trail', () => {
  test('the audit lines of a sign-up and a sign-in name the user and the session', async () => {
    const email = newEmail()
    let first = ''
    let second = ''
    const lines = await auditTrail(async () => {
      first = (await signUp(h, email)).token
      second = (await signIn(h, email)).token
    })
    assert.deepEqual(lines, [line('sign_up', first), line('sign_in', second)])
  })

  test('the audit line for a wrong code is the same whether or not the address has an account', async () => {
    const { email } = await signUp(h)
    h.clock.advance(60_000)
    await requestCode(email)
    const wrong = otherThan(await queuedCode(h, email))
    for (const address of [email, newEmail()]) {
      const lines = await auditTrail(() =>
        h.call('POST', '/api/v1/auth/verify-otp', { body: { email: address, code: wrong } }),
      )
      assert.deepEqual(lines, [line('sign_in_failed')])
    }
  })

  test('the audit line of a change of preferences names the user and the session, and a refused change has none', async () => {
    const { token } = await signUp(h)
    const lines = await auditTrail(async () => {
      for (const body of [{ email_paused: true }, { types: { sms: { push: true } } }]) {
        await h.call('PATCH', '/api/v1/notification-preferences', { token, body })
      }
    })
    assert.deepEqual(lines, [line('preferences_changed', token)])
  })

  test('the first registration of a browser for pushes and its end are audited, and nothing else about it', async () => {
    const { token } = await signUp(h)
    const body = newSubscription()
    const send = (method: string, sent: object) => h.call(method, '/api/v1/push/subscriptions', { token, body: sent })
    const lines = await auditTrail(async () => {
      for (let count = 0; count < 2; count += 1) assert.equal((await send('PUT', body)).status, 200)
      for (let count = 0; count < 2; count += 1) {
        assert.equal((await send('DELETE', { endpoint: body.endpoint })).status, 200)
      }
    })
    assert.deepEqual(lines, [line('push_subscribed', token), line('push_unsubscribed', token)])
  })

  test('an audit line contains the request id of the answer and the /64 network of an IPv6 client', async () => {
    const before = h.logged.length
    const answer = await h.call('POST', '/api/v1/auth/verify-otp', {
      body: { email: newEmail(), code: '0000' },
      remoteAddress: '2001:db8:1:2:3:4:5:6',
    })
    const [logged] = h.logged.slice(before).filter(line => line.audit)
    assert.deepEqual([logged!.reqId, logged!.client], [answer.headers['x-request-id'], '2001:db8:1:2::/64'])
  })

  test('a logout is audited, and so is a refused refresh with the token of the ended session', async () => {
    const { token } = await signUp(h)
    const lines = await auditTrail(async () => {
      await h.call('POST', '/api/v1/auth/logout', { token })
      await h.call('POST', '/api/v1/auth/refresh', { token })
    })
    assert.deepEqual(lines, [line('logout', token), line('refresh_refused', token)])
  })

  test('after a refresh with a dead token, the service writes an audit warning that names the session', async () => {
    const { token: old } = await signUp(h)
    const renewed = await h.call('POST', '/api/v1/auth/refresh', { token: old })
    await h.call('GET', '/api/v1/auth/me', { token: renewed.body.access_token })
    h.clock.advance(31_000)
    const lines = await auditTrail(async () => {
      assert.equal((await h.call('POST', '/api/v1/auth/refresh', { token: old })).status, 401)
    })
    assert.deepEqual(lines, [{ ...line('refresh_reuse', old), level: 'warn' }])
  })

  test('a failed and a successful deletion of an account are audited', async () => {
    const { email, token } = await signUp(h)
    h.clock.advance(60_000)
    await requestCode(email)
    const code = await queuedCode(h, email)
    const lines = await auditTrail(async () => {
      for (const sent of [otherThan(code), code]) {
        await h.call('DELETE', '/api/v1/auth/me', { token, body: { code: sent } })
      }
    })
    assert.deepEqual(lines, [line('deletion_failed', token), line('deletion', token)])
  })

  test('a wrong key at the intake or at /metrics is audited, and the log does not contain the key', async () => {
    const { token } = await signUp(h)
    const lines = await auditTrail(async () => {
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

  test('the service audits no valid request for a profile, token or code, and no malformed token or code', async () => {
    const { token } = await signUp(h)
    const lines = await auditTrail(async () => {
      const { body } = await h.call('POST', '/api/v1/auth/refresh', { token })
      await h.call('GET', '/api/v1/auth/me', { token: body.access_token })
      await h.call('GET', '/api/v1/auth/me', { token: 'unreadable' })
      await h.call('POST', '/api/v1/auth/refresh', { token: 'unreadable' })
      await h.call('POST', '/api/v1/auth/verify-otp', { body: { email: newEmail(), code: '12' } })
      await h.call('POST', '/api/v1/auth/request-otp', { body: profile(newEmail()) })
    })
    assert.deepEqual(lines, [])
  })

  test('docs/operations.md lists every audit event with its level, and no other event', async () => {
    const text = await readFile(new URL('../docs/operations.md', import.meta.url), 'utf8')
    const [, section] = text.split('### The audit trail\n')
    const rows = [...section!.split(/^##/m)[0]!.matchAll(/^\| `(\w+)` \| (info|warn) \|/gm)]
    assert.deepEqual(Object.fromEntries(rows.map(([, name, level]) => [name, level])), AUDIT_EVENTS)
  })
})

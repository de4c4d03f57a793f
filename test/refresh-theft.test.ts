import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { harness } from './support/app.ts'
import { makeUser } from './support/factories.ts'
import { getMeStatus, refresh, renew } from './support/refreshes.ts'
import { readPayload } from './support/scenario.ts'
import { countStatements } from './support/statements.ts'
import { waitUntil } from './support/wait-until.ts'

const h = harness()

const SECONDS = 1_000
const MINUTES = 60_000

const OWNER = { remoteAddress: '192.0.2.7', headers: { 'user-agent': 'app/1' } }
const THIEF = { remoteAddress: '198.51.100.7', headers: { 'user-agent': 'curl' } }

/** Makes a user whose token has been refreshed once by `OWNER`. @returns both tokens, the refreshed one first */
async function makeRefreshed(): Promise<[string, string]> {
  const { token } = await makeUser(h)
  return [token, await renew(h, token, OWNER)]
}

async function readSession(token: string): Promise<Record<string, unknown>> {
  const [row] = await h.database.sql`select * from session where id = ${readPayload(token).sid}`
  return row!
}

/** Returns the names of the audit lines that the service writes during `work`. */
async function listAudited(work: () => Promise<unknown>): Promise<unknown[]> {
  const before = h.logged.length
  await work()
  return h.logged.slice(before).flatMap(line => (line.audit ? [line.audit] : []))
}

describe('a refresh with a superseded token whose successor no request has used', () => {
  const CALLERS = [
    ['the network and the User-Agent of', OWNER],
    ['another address in the network and the User-Agent of', { ...OWNER, remoteAddress: '192.0.2.250' }],
    ['another network than', { ...OWNER, remoteAddress: THIEF.remoteAddress }],
    ['another User-Agent than', { ...OWNER, headers: THIEF.headers }],
  ] as const
  for (const [what, caller] of CALLERS) {
    test(`after 30 s, from ${what} the refresh that issued the successor, a repeated refresh returns the successor and is audited`, async () => {
      const [token, next] = await makeRefreshed()
      h.clock.advance(31 * SECONDS)
      const audited = await listAudited(async () => assert.equal(await renew(h, token, caller), next))
      assert.deepEqual(audited, ['refresh_repeated'])
    })
  }

  test('after 30 s, from another network and another User-Agent, a repeated refresh ends the session as stolen', async () => {
    for (const waitMs of [30 * SECONDS, 61 * MINUTES]) {
      const [token, next] = await makeRefreshed()
      h.clock.advance(waitMs)
      const audited = await listAudited(async () => assert.equal((await refresh(h, token, THIEF)).status, 401))
      assert.deepEqual(audited, ['refresh_reuse'])
      assert.equal((await refresh(h, next, OWNER)).status, 401)
      assert.equal((await readSession(token)).end_reason, 'reuse')
    }
  })

  test('a thief who refreshes a token early and hides the new token is noticed when the owner refreshes', async () => {
    const { token } = await makeUser(h)
    h.clock.advance(59 * MINUTES)
    const stolen = await renew(h, token, THIEF)
    h.clock.advance(MINUTES)
    assert.equal((await refresh(h, token, OWNER)).status, 401)
    assert.equal(await getMeStatus(h, stolen), 401)
  })

  test('a thief who does the same for 7 days with the User-Agent of the owner leaves an audit line in every round', async () => {
    const spoofed = { ...THIEF, headers: OWNER.headers }
    let { token } = await makeUser(h)
    const rounds = 7 * 24 - 1
    const audited = await listAudited(async () => {
      for (let round = 0; round < rounds; round += 1) {
        h.clock.advance(59 * MINUTES)
        const stolen = await renew(h, token, spoofed)
        h.clock.advance(MINUTES)
        assert.equal(await renew(h, token, OWNER), stolen)
        token = stolen
      }
    })
    assert.deepEqual(audited, Array(rounds).fill('refresh_repeated'))
  })

  test('within 30 s, a repeated refresh from another network and User-Agent returns the successor and is not audited', async () => {
    const [token, next] = await makeRefreshed()
    h.clock.advance(30 * SECONDS - 1)
    const audited = await listAudited(async () => assert.equal(await renew(h, token, THIEF), next))
    assert.deepEqual(audited, [])
  })

  test('the service compares with the refresh that issued the newest token, not with a refresh that returned it again', async () => {
    const [token, next] = await makeRefreshed()
    assert.equal(await renew(h, token, THIEF), next)
    h.clock.advance(31 * SECONDS)
    assert.equal(await renew(h, token, OWNER), next)
    assert.equal((await refresh(h, token, THIEF)).status, 401)
  })

  test('if a process of the previous version issued the newest token, a repeated refresh from elsewhere returns this token', async () => {
    const [first, second] = await makeRefreshed()
    h.clock.advance(40 * MINUTES)
    // A process of the previous version does not set the columns of migration 0009.
    await h.database.sql`
      update session set generation = 3, issued_at = ${h.clock.now()}, superseded_at = superseded_at || ${h.clock.now()}::timestamptz,
        presented = 2
      where id = ${readPayload(first).sid}`
    h.clock.advance(31 * SECONDS)
    const third = await renew(h, second, THIEF)
    assert.equal(readPayload(third).jti, `${readPayload(first).sid}.3`)
  })

  test('the database contains no network and no User-Agent, only keyed hashes of them', async () => {
    const [token] = await makeRefreshed()
    const row = await readSession(token)
    assert.deepEqual(
      [row.refresh_network, row.refresh_agent].map(hash => (hash as Buffer).length),
      [16, 16],
    )
    assert.doesNotMatch(JSON.stringify(row), /192\.0\.2|app\/1/)
  })
})

describe('the limit of refreshes', () => {
  test('a session may send 60 refreshes in a minute, from any network; the next one gets a 429, and other sessions get none', async () => {
    const { token } = await makeUser(h)
    const statuses = await Promise.all(
      Array.from({ length: 60 }, (_, index) =>
        refresh(h, token, { remoteAddress: `192.0.${index}.7` }).then(({ status }) => status),
      ),
    )
    assert.deepEqual(new Set(statuses), new Set([200]))
    const refused = await refresh(h, token, OWNER)
    assert.deepEqual([refused.status, refused.body.code], [429, 'throttled'])
    const seconds = Number(refused.headers['retry-after'])
    assert.ok(seconds > 0 && seconds <= 60)
    assert.equal(await getMeStatus(h, token), 200)
    assert.equal((await refresh(h, (await makeUser(h)).token)).status, 200)
    h.clock.advance(seconds * SECONDS)
    assert.equal((await refresh(h, token)).status, 200)
  })

  test('requests without a valid token count for no session', async () => {
    const { token } = await makeUser(h)
    for (let round = 0; round < 70; round += 1) assert.equal((await refresh(h, `${token}x`)).status, 401)
    assert.equal((await refresh(h, token)).status, 200)
  })
})

test('a refused refresh with a token of an ended session leaves the session cache alone', async () => {
  await waitUntil(() => h.ctx.listener!.isUp())
  const { token } = await makeUser(h)
  await getMeStatus(h, token)
  const countWithToken = () => countStatements(h.ctx, () => getMeStatus(h, token))
  assert.equal(await countWithToken(), 1)
  // The process gets no NOTIFY about this end, so the cache keeps the token for up to 5 s.
  await h.database.sql`
    update session set ended_at = created_at, end_reason = 'logout' where id = ${readPayload(token).sid}`
  assert.deepEqual(await listAudited(() => refresh(h, token)), ['refresh_refused'])
  assert.equal(await countWithToken(), 1)
})

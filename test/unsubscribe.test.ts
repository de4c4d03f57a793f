import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { deriveKeys } from '../src/keys.ts'
import { eraseUser } from '../src/personal-data.ts'
import { readAll } from '../src/reach/preferences.ts'
import { buildUnsubscribeUrl, readUnsubscribeToken } from '../src/reach/unsubscribe.ts'
import { anotherApp, harness, JWT_SECRET } from './support/app.ts'
import { assertError } from './support/endpoints.ts'
import { makeUser } from './support/factories.ts'

const h = harness({ PUBLIC_URL: 'https://example.com/club/' })

const makePath = (userId: number, type?: 'game_cancelled') => buildUnsubscribeUrl(h.ctx.keys, '', userId, type)

async function readEmail(userId: number) {
  const preferences = (await readAll(h.database.sql, [userId], h.ctx.config.preferenceDefaults)).get(userId)!
  const on = Object.entries(preferences.types).filter(([, { email }]) => email)
  return { isPaused: preferences.emailPaused, on: on.map(([type]) => type) }
}

const ON = { isPaused: false, on: ['game_cancelled', 'game_reminder'] }

suite('GET /unsubscribe/{token}', () => {
  test('shows a page with one button, and changes nothing', async () => {
    const { id } = await makeUser(h)
    const answer = await h.call('GET', makePath(id), { headers: { 'accept-language': 'en' } })
    assert.equal(answer.status, 200)
    assert.match(answer.headers['content-type']!, /^text\/html/)
    assert.equal(answer.text.match(/<button>/g)?.length, 1)
    assert.match(answer.text, /<form method="post">/)
    assert.doesNotMatch(answer.text, /<script|<a /)
    assert.match(answer.text, /Stop all emails of Courtside about unread notifications\?/)
    assert.deepEqual(await readEmail(id), ON)
  })

  test('has a policy that allows only its form and its style', async () => {
    const { headers } = await h.call('GET', makePath(1))
    const policy = headers['content-security-policy']!
    assert.match(policy, /^default-src 'none'; style-src 'sha256-[^']+'; base-uri 'none'; form-action 'self'; /)
    assert.equal(headers['referrer-policy'], 'no-referrer')
    assert.equal(headers['cache-control'], 'no-store')
  })

  test('follows Accept-Language, and names the type', async () => {
    const page = async (language: string) =>
      (await h.call('GET', makePath(1, 'game_cancelled'), { headers: { 'accept-language': language } })).text
    assert.match(await page('fr'), /<html lang="fr">.*pour «\u00a0Votre partie est annulée\u00a0»\u00a0\?/s)
    assert.match(await page('en'), /<html lang="en">.*about “Your game is cancelled”\?/s)
  })
})

suite('POST /unsubscribe/{token}', () => {
  test('turns off all mails about notifications, without a sign-in', async () => {
    const { id } = await makeUser(h)
    const answer = await h.call('POST', makePath(id), { headers: { 'accept-language': 'en' } })
    assert.equal(answer.status, 200)
    assert.match(answer.text, /Done\..*Courtside will send you no more emails about unread notifications\./)
    assert.doesNotMatch(answer.text, /<form/)
    assert.deepEqual(await readEmail(id), { ...ON, isPaused: true })
    const line = h.logged.findLast(each => each.audit === 'unsubscribe')
    assert.equal(line!.user_id, id)
  })

  test('turns off the mails about one type with `type`', async () => {
    const { id } = await makeUser(h)
    await h.call('POST', makePath(id, 'game_cancelled'))
    assert.deepEqual(await readEmail(id), { isPaused: false, on: ['game_reminder'] })
  })

  const bodies: Record<string, { body: string; type?: string }> = {
    'the body of RFC 8058': { body: 'List-Unsubscribe=One-Click', type: 'application/x-www-form-urlencoded' },
    'the same body as form data': {
      body: '--x\r\nContent-Disposition: form-data; name="List-Unsubscribe"\r\n\r\nOne-Click\r\n--x--\r\n',
      type: 'multipart/form-data; boundary=x',
    },
    'no body': { body: '' },
    'malformed JSON': { body: '{"a', type: 'application/json' },
    'a body without a valid type': { body: 'x', type: 'x' },
    'a large body': { body: 'x'.repeat(200_000), type: 'text/plain' },
  }
  for (const [title, { body, type }] of Object.entries(bodies)) {
    test(`acts with ${title}`, async () => {
      const { id } = await makeUser(h)
      const headers: Record<string, string> = type === undefined ? {} : { 'content-type': type }
      assert.equal((await h.call('POST', makePath(id), { body, headers })).status, 200)
      assert.equal((await readEmail(id)).isPaused, true)
    })
  }

  test('answers a repeated request in the same way', async () => {
    const { id } = await makeUser(h)
    const first = await h.call('POST', makePath(id))
    const second = await h.call('POST', makePath(id))
    assert.deepEqual([second.status, second.text], [first.status, first.text])
  })
})

test('a repeated request changes no row', async () => {
  const { id } = await makeUser(h)
  const read = () =>
    h.database.sql`select version, types, email_paused from notification_preference where user_id = ${id}`
  for (const path of [makePath(id, 'game_cancelled'), makePath(id)]) {
    await h.call('POST', path)
    const before = await read()
    assert.equal((await h.call('POST', path)).status, 200)
    assert.deepEqual(await read(), before)
  }
  assert.deepEqual(await read(), [{ version: 2, types: { game_cancelled: { email: false } }, email_paused: true }])
})

test('a flood of requests waits for slots, so it does not keep the connections of other requests busy', async () => {
  const { id } = await makeUser(h)
  let answers: Promise<{ status: number }>[] = []
  await h.database.sql.begin(async tx => {
    await tx`select id from app_user where id = ${id} for update`
    answers = Array.from({ length: 80 }, () => h.call('POST', makePath(id)))
    const refused = await Promise.race(answers)
    assert.equal(refused.status, 503)
  })
  const done = (await Promise.all(answers)).filter(({ status }) => status === 200)
  assert.ok(done.length >= 64)
})

test('an unknown token gets the same page and the same answer, and changes nothing', async () => {
  const { id } = await makeUser(h)
  const right = makePath(id)
  const [, other] = makePath(id + 1).split('.')
  const deleted = await makeUser(h)
  await eraseUser(h.database.sql, deleted.id)
  const unknown = [
    `/unsubscribe/${id}.${other}`,
    right.slice(0, -1),
    `${right}A`,
    right.replace('/unsubscribe/', '/unsubscribe/0'),
    `/unsubscribe/${id}`,
    '/unsubscribe/nonsense',
    `/unsubscribe/99999999999999999999.${other}`,
    makePath(deleted.id),
  ]
  for (const method of ['GET', 'POST']) {
    const known = await h.call(method, makePath((await makeUser(h)).id))
    for (const path of unknown) {
      const answer = await h.call(method, path)
      assert.deepEqual([answer.status, answer.text], [known.status, known.text], path)
    }
  }
  assert.deepEqual(await readEmail(id), ON)
})

test('a type that does not exist gets a 422 that names the field', async () => {
  const { id } = await makeUser(h)
  for (const method of ['GET', 'POST']) {
    assertError(await h.call(method, `${makePath(id)}?type=sms`), 422, 'validation_failed', 'type')
  }
  assert.deepEqual(await readEmail(id), ON)
})

test('the page is below the path of PUBLIC_URL too, because a proxy may pass this path on', async () => {
  const { id } = await makeUser(h)
  assert.equal((await h.call('GET', `/club${makePath(id)}`)).status, 200)
  assert.equal((await h.call('POST', `/club${makePath(id)}`)).status, 200)
  assert.equal((await readEmail(id)).isPaused, true)
})

test('the page is below any path of PUBLIC_URL', async () => {
  for (const path of ['/caf%C3%A9', '/a:b', '/a%20b', '/(x)', '/a%25b']) {
    const other = await anotherApp(h, { PUBLIC_URL: `https://example.com${path}` })
    try {
      assert.equal((await other.call('GET', `${path}${makePath(1)}`)).status, 200, path)
    } finally {
      await other.close()
    }
  }
})

test('a link stays valid while its secret is among the secrets, and only then', async () => {
  const token = buildUnsubscribeUrl(deriveKeys([JWT_SECRET]), '', 7)
    .split('/')
    .at(-1)!
  const newer = 'pW2vXb8sKd4qLm9zRt6yHc3gNf7jUa5e'
  assert.equal(readUnsubscribeToken(deriveKeys([newer, JWT_SECRET]), token), 7)
  assert.equal(readUnsubscribeToken(deriveKeys([newer]), token), undefined)
  assert.match(token, /^7\.[\w-]{22}$/)
})

test('without PUBLIC_URL, the page is at its path only', async () => {
  const other = await anotherApp(h, { PUBLIC_URL: '' })
  try {
    assert.equal((await other.call('GET', makePath(1))).status, 200)
    assert.equal((await other.call('GET', `/club${makePath(1)}`)).status, 404)
  } finally {
    await other.close()
  }
})

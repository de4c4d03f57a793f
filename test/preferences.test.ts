import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { NOTIFICATION_TYPES } from '../src/notification-types.ts'
import { pauseEmail, readAll } from '../src/reach/preferences.ts'
import { anotherApp, harness } from './support/app.ts'
import { assertError } from './support/endpoints.ts'
import { makeUser } from './support/factories.ts'

const URL = '/api/v1/notification-preferences'

const h = harness({ SMTP_URL: 'smtp://127.0.0.1:9', CORS_ORIGINS: 'https://app.example' })

async function makeReader() {
  const user = await makeUser(h)
  const { token } = user
  const get = async (language = 'en') =>
    (await h.call('GET', URL, { token, headers: { 'accept-language': language } })).body.data
  const patch = (body: unknown) => h.call('PATCH', URL, { token, body })
  const readRow = async () => {
    const [row] = await h.database.sql`
      select types, email_paused, quiet_enabled, quiet_from, quiet_to, time_zone, version
      from notification_preference where user_id = ${user.id}`
    return row
  }
  return { ...user, get, patch, readRow }
}

/** Stores a push subscription, as a browser in a time zone makes one. */
async function subscribe(userId: number, timeZone: string | null, confirmedAt: Date): Promise<void> {
  await h.database.sql`
    insert into push_subscription
      (user_id, session_id, endpoint, p256dh, auth, public_key, time_zone, created_at, confirmed_at)
    select user_id, id, ${`https://push.example/${Math.random()}`}, '', '', '', ${timeZone}, ${confirmedAt}, ${confirmedAt}
    from session where user_id = ${userId}`
}

describe('GET /notification-preferences', () => {
  test('a user who has chosen nothing gets the defaults', async () => {
    const { get } = await makeReader()
    const { types, ...rest } = await get()
    assert.deepEqual(Object.keys(types), [...NOTIFICATION_TYPES])
    for (const type of NOTIFICATION_TYPES) {
      assert.equal(types[type].push, true)
      assert.equal(types[type].email, ['game_cancelled', 'game_reminder'].includes(type))
    }
    assert.deepEqual(rest, {
      email_paused: false,
      quiet_hours: { enabled: true, from: '22:00', to: '08:00' },
      time_zone: 'Europe/Paris',
    })
  })

  test('the categories and labels follow Accept-Language', async () => {
    const { get } = await makeReader()
    const joined = { push: true, email: false }
    assert.deepEqual((await get('fr')).types.game_joined, {
      ...joined,
      category: 'Matchs',
      label: 'Un joueur rejoint votre partie',
    })
    assert.deepEqual((await get('en')).types.game_joined, {
      ...joined,
      category: 'Games',
      label: 'A player joins your game',
    })
    assert.equal((await get('en')).types.score_submitted.category, 'Scores')
  })

  test('the settings change the defaults of everyone who has not chosen, and not the choices', async () => {
    const user = await makeReader()
    await user.patch({ types: { game_full: { email: true } } })
    const other = await anotherApp(h, { EMAIL_TYPES: 'score_contested', TIMEZONE: 'Asia/Tokyo' })
    const { body } = await other.call('GET', URL, { token: user.token })
    await other.close()
    const mailed = NOTIFICATION_TYPES.filter(type => body.data.types[type].email)
    assert.deepEqual([mailed, body.data.time_zone], [['game_full', 'score_contested'], 'Asia/Tokyo'])
  })

  test('in development, quiet hours are off', async () => {
    const user = await makeReader()
    const other = await anotherApp(h, { SMTP_URL: '', DEV_MAILBOX: 'on' })
    const { body } = await other.call('GET', URL, { token: user.token })
    await other.close()
    assert.equal(body.data.quiet_hours.enabled, false)
  })

  test('without a choice, the time zone is that of the push subscription that was confirmed last', async () => {
    const user = await makeReader()
    await subscribe(user.id, 'Asia/Kolkata', new Date('2026-01-02'))
    await subscribe(user.id, 'Australia/Lord_Howe', new Date('2026-01-01'))
    await subscribe(user.id, null, new Date('2026-01-03'))
    assert.equal((await user.get()).time_zone, 'Asia/Kolkata')
    await user.patch({ time_zone: 'America/Sao_Paulo' })
    assert.equal((await user.get()).time_zone, 'America/Sao_Paulo')
    await user.patch({ time_zone: null })
    assert.equal((await user.get()).time_zone, 'Asia/Kolkata')
  })

  test('a stored time zone that this version of Node does not know counts as none', async () => {
    const user = await makeReader()
    await subscribe(user.id, 'Mars/Olympus', new Date('2026-01-02'))
    assert.equal((await user.get()).time_zone, 'Europe/Paris')
  })

  test('a user whose account is gone gets a 401', async () => {
    const user = await makeReader()
    await user.get()
    await h.database.sql`delete from app_user where id = ${user.id}`
    for (const method of ['GET', 'PATCH']) {
      assertError(
        await h.call(method, URL, { token: user.token, ...(method === 'PATCH' && { body: {} }) }),
        401,
        'unauthenticated',
      )
    }
  })
})

describe('PATCH /notification-preferences', () => {
  test('a change returns all preferences, and other values stay', async () => {
    const user = await makeReader()
    const { status, body } = await user.patch({
      types: { game_joined: { push: false } },
      quiet_hours: { enabled: false },
    })
    assert.equal(status, 200)
    assert.equal(body.data.types.game_joined.push, false)
    assert.equal(body.data.types.game_joined.email, false)
    assert.deepEqual(body.data.quiet_hours, { enabled: false, from: '22:00', to: '08:00' })
    assert.deepEqual(await user.get('fr'), body.data)
  })

  test('what GET returned can be sent back, and stores nothing', async () => {
    const user = await makeReader()
    const { status, body } = await user.patch(await user.get('fr'))
    assert.equal(status, 200)
    assert.deepEqual(body.data, await user.get('fr'))
    assert.equal(await user.readRow(), undefined)
  })

  test('what GET returned keeps earlier choices, also those that equal the default', async () => {
    const user = await makeReader()
    await user.patch({ types: { game_joined: { push: false } }, quiet_hours: { from: '23:00' } })
    await user.patch({ types: { game_joined: { push: true } } })
    const before = await user.readRow()
    assert.deepEqual(before!.types, { game_joined: { push: true } })
    await user.patch(await user.get())
    assert.deepEqual(await user.readRow(), before)
  })

  test('only values that differ from those in force become choices', async () => {
    const user = await makeReader()
    await user.patch({
      types: { game_joined: { push: true, email: true }, game_full: { email: false } },
      quiet_hours: { enabled: true, from: '21:30', to: '08:00' },
      time_zone: 'Europe/Paris',
    })
    assert.deepEqual(await user.readRow(), {
      types: { game_joined: { email: true } },
      email_paused: false,
      quiet_enabled: null,
      quiet_from: '21:30',
      quiet_to: null,
      time_zone: null,
      version: 1,
    })
  })

  test('null takes a choice back, alone or with its group', async () => {
    const user = await makeReader()
    const choose = () =>
      user.patch({
        types: { game_joined: { push: false, email: true }, game_full: { push: false } },
        email_paused: true,
        quiet_hours: { enabled: false, from: '20:00', to: '09:00' },
        time_zone: 'Asia/Tokyo',
      })
    await choose()
    await user.patch({
      types: { game_joined: { push: null }, game_full: null },
      email_paused: null,
      quiet_hours: { from: null },
      time_zone: null,
    })
    assert.deepEqual(await user.readRow(), {
      types: { game_joined: { email: true } },
      email_paused: false,
      quiet_enabled: false,
      quiet_from: null,
      quiet_to: '09:00',
      time_zone: null,
      version: 2,
    })
    await choose()
    await user.patch({ types: null, quiet_hours: null })
    const row = await user.readRow()
    assert.deepEqual([row!.types, row!.quiet_enabled, row!.quiet_from, row!.quiet_to], [{}, null, null, null])
  })

  test('an empty body, a blank value and unknown members change nothing', async () => {
    const user = await makeReader()
    for (const body of [
      {},
      { types: {} },
      { time_zone: ' ' },
      { colour: 'blue' },
      { quiet_hours: { until: '1:00' } },
    ]) {
      assert.equal((await user.patch(body)).status, 200)
    }
    assert.equal(await user.readRow(), undefined)
  })

  test('categories and labels are ignored, whatever they are', async () => {
    const user = await makeReader()
    const { status } = await user.patch({ types: { game_joined: { category: 7, label: null, push: false } } })
    assert.equal(status, 200)
    assert.deepEqual((await user.readRow())!.types, { game_joined: { push: false } })
  })

  test('the version grows with each change, and only then', async () => {
    const user = await makeReader()
    const readVersion = async () =>
      (await readAll(h.database.sql, [user.id], h.ctx.config.preferenceDefaults)).get(user.id)!.version
    assert.equal(await readVersion(), 0)
    await user.patch({ email_paused: true })
    assert.equal(await readVersion(), 1)
    await user.patch({ email_paused: true })
    assert.equal(await readVersion(), 1)
    await pauseEmail(h.database.sql, user.id, 'game_joined', h.clock.now())
    assert.equal(await readVersion(), 2)
  })

  const bad: [string, unknown, string][] = [
    ['an unknown type', { types: { game_lost: { push: true } } }, 'types.game_lost'],
    ['an unknown channel', { types: { game_joined: { sms: true } } }, 'types.game_joined.sms'],
    ['a prototype as a channel', '{"types": {"game_joined": {"__proto__": true}}}', 'types.game_joined.__proto__'],
    ['a channel that is a text', { types: { game_joined: { push: 'yes' } } }, 'types.game_joined.push'],
    ['a type that is a list', { types: { game_joined: [] } }, 'types.game_joined'],
    ['types that are a text', { types: 'all' }, 'types'],
    ['a pause that is a number', { email_paused: 1 }, 'email_paused'],
    ['quiet hours that are a boolean', { quiet_hours: false }, 'quiet_hours'],
    ['an hour above 23', { quiet_hours: { from: '24:00' } }, 'quiet_hours.from'],
    ['an hour of one digit', { quiet_hours: { to: '8:00' } }, 'quiet_hours.to'],
    ['a time with seconds', { quiet_hours: { to: '08:00:00' } }, 'quiet_hours.to'],
    ['an unknown time zone', { time_zone: 'Mars/Olympus' }, 'time_zone'],
    ['an offset as a time zone', { time_zone: '+02:00' }, 'time_zone'],
    ['a path as a time zone', { time_zone: '../../etc/passwd' }, 'time_zone'],
    ['equal times', { quiet_hours: { from: '09:00', to: '09:00' } }, 'quiet_hours.to'],
    ['an end that is the default start', { quiet_hours: { to: '22:00' } }, 'quiet_hours.to'],
    ['a start that is the default end', { quiet_hours: { from: '08:00', enabled: false } }, 'quiet_hours.from'],
  ]
  for (const [title, body, field] of bad) {
    test(`${title} is refused with a 422 that names the field, and nothing is stored`, async () => {
      const user = await makeReader()
      assertError(await user.patch(body), 422, 'validation_failed', field)
      assert.equal(await user.readRow(), undefined)
    })
  }

  test('equal times are refused if one of them is stored, and also if null would bring a default back', async () => {
    const user = await makeReader()
    await user.patch({ quiet_hours: { from: '08:00', to: '10:00' } })
    assertError(await user.patch({ quiet_hours: { from: '10:00' } }), 422, 'validation_failed', 'quiet_hours.from')
    assertError(await user.patch({ quiet_hours: { to: null } }), 422, 'validation_failed', 'quiet_hours.to')
    assert.deepEqual((await user.get()).quiet_hours, { enabled: true, from: '08:00', to: '10:00' })
  })

  test('a body full of unknown types gets one short error', async () => {
    const user = await makeReader()
    const types = Object.fromEntries(Array.from({ length: 2_000 }, (_, index) => [`type_${index}`, {}]))
    assertError(await user.patch({ types }), 422, 'validation_failed', 'types.type_0')
  })

  test('a time zone may have any name that Node knows', async () => {
    const user = await makeReader()
    for (const name of [
      'Asia/Kolkata',
      'Asia/Calcutta',
      'Europe/Kyiv',
      'America/Argentina/Buenos_Aires',
      'Etc/GMT+5',
      'UTC',
    ]) {
      const { body } = await user.patch({ time_zone: name })
      assert.equal(body.data.time_zone, name)
    }
  })

  test('pages of the listed origins may send PATCH', async () => {
    const headers = { origin: 'https://app.example', 'access-control-request-method': 'PATCH' }
    const preflight = await h.call('OPTIONS', URL, { headers })
    assert.match(preflight.headers['access-control-allow-methods']!, /\bPATCH\b/)
  })
})

describe('the pause of all mails', () => {
  test('`email` shows the choice or default of a type during the pause', async () => {
    const user = await makeReader()
    await user.patch({ email_paused: true })
    const preferences = await user.get()
    assert.deepEqual([preferences.email_paused, preferences.types.game_cancelled.email], [true, true])
  })

  test('`"email": true` for a type ends the pause, even if it equals the value in force', async () => {
    const user = await makeReader()
    for (const email of [true, false, null]) {
      await user.patch({ email_paused: true })
      const { body } = await user.patch({ types: { game_cancelled: { email } } })
      assert.equal(body.data.email_paused, email !== true)
    }
  })

  test('a body that names `email_paused` decides about the pause', async () => {
    const user = await makeReader()
    const types = { game_cancelled: { email: true } }
    assert.equal((await user.patch({ types, email_paused: true })).body.data.email_paused, true)
    assert.equal((await user.patch({ types, email_paused: null })).body.data.email_paused, false)
    await user.patch({ email_paused: true })
    // The body comes from GET, so it contains `"email": true` for two types.
    assert.equal((await user.patch(await user.get())).body.data.email_paused, true)
  })

  test('pauseEmail turns off one type, or all of them', async () => {
    const user = await makeReader()
    await user.patch({ types: { game_reminder: { push: false } } })
    await pauseEmail(h.database.sql, user.id, 'game_reminder', h.clock.now())
    assert.deepEqual((await user.readRow())!.types, { game_reminder: { push: false, email: false } })
    assert.equal((await user.get()).email_paused, false)
    await pauseEmail(h.database.sql, user.id, undefined, h.clock.now())
    assert.equal((await user.get()).email_paused, true)
    assert.equal((await user.get()).types.game_reminder.email, false)
    await pauseEmail(h.database.sql, user.id, 'game_reminder', h.clock.now())
    assert.equal((await user.get()).email_paused, true)
  })

  test('pauseEmail does nothing for an account that is gone', async () => {
    await pauseEmail(h.database.sql, 2 ** 50, undefined, h.clock.now())
    assert.equal((await readAll(h.database.sql, [2 ** 50], h.ctx.config.preferenceDefaults)).size, 0)
  })
})

describe('waiting deliveries', () => {
  /** Stores a push that waits until tomorrow, and a row for a mail. */
  async function makeWaiting(userId: number) {
    const due = new Date(h.clock.now().getTime() + 86_400_000)
    const [row] = await h.database.sql<{ id: number }>`
      insert into outbox (channel, class, network, user_id, payload, due, ready, created_at)
      values ('push', 1, '\\x00', ${userId}, '{}', ${due}, false, ${h.clock.now()}) returning id`
    await h.database.sql`
      insert into waiting_mail (user_id, notification_id, urgent, created_at, look_at)
      values (${userId}, ${row!.id}, false, ${h.clock.now()}, ${due})`
    return async () => {
      const [state] = await h.database.sql<{ ready: boolean; now: boolean }>`
        select ready, due = ${h.clock.now()} and look_at = ${h.clock.now()} as now
        from outbox join waiting_mail on waiting_mail.notification_id = outbox.id where outbox.id = ${row!.id}`
      return state!.ready && state!.now
    }
  }

  const waking: [string, unknown, boolean][] = [
    ['other quiet hours', { quiet_hours: { to: '07:00' } }, true],
    ['no quiet hours', { quiet_hours: { enabled: false } }, true],
    ['another time zone', { time_zone: 'Asia/Tokyo' }, true],
    ['the same quiet hours', { quiet_hours: { to: '08:00' } }, false],
    ['a type without pushes', { types: { game_full: { push: false } } }, true],
    ['a type without mails', { types: { game_cancelled: { email: false } } }, true],
    ['a pause of all mails', { email_paused: true }, true],
    ['a type with mails', { types: { game_full: { email: true } } }, false],
  ]
  for (const [title, body, isWoken] of waking) {
    test(`${title}: the waiting deliveries of the user ${isWoken ? 'become ready at once' : 'go on waiting'}`, async () => {
      const [user, neighbour] = [await makeReader(), await makeReader()]
      const [mine, others] = [await makeWaiting(user.id), await makeWaiting(neighbour.id)]
      await user.patch(body)
      assert.deepEqual([await mine(), await others()], [isWoken, false])
    })
  }
})

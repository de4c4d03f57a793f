import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ConfigError, readConfig } from '../src/config.ts'

const SECRET = 'kuC4vBnmNwzIEYxX0mVQJ1y7s2dGgqLh'
const VAPID_KEY = 'yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw'
const PRODUCTION = {
  DATABASE_URL: 'postgres://db.example/courtside',
  SMTP_URL: 'smtps://user:pass@mail.example:465',
  JWT_SECRET: SECRET,
  INTAKE_KEYS: SECRET,
}

function readFaults(env: Record<string, string>): string[] {
  try {
    readConfig(env)
    return []
  } catch (error) {
    assert.ok(error instanceof ConfigError)
    return error.faults
  }
}

describe('an empty environment', () => {
  test('with an empty environment, readConfig returns the documented defaults', () => {
    assert.deepEqual(readConfig({}), {
      host: '127.0.0.1',
      port: 3000,
      databaseUrl: undefined,
      databaseSchema: 'courtside',
      dataDir: './data',
      mailServer: undefined,
      isDevelopment: true,
      mailFrom: 'Courtside <no-reply@localhost>',
      smtpHeloName: undefined,
      writeConnections: 5,
      mailConcurrency: 4,
      jwtSecrets: [],
      intakeKeys: [],
      trustProxy: [],
      sharedNetworks: [],
      corsOrigins: [],
      metricsToken: undefined,
      throttle: { requestOtp: 5, verifyOtp: 10 },
      guessBudgets: undefined,
      signUpLimits: undefined,
      reminderOffsets: [{ days: 1 }, { ms: 7_200_000 }],
      timeZone: 'Europe/Paris',
      retentionReadDays: 90,
      retentionDays: 365,
      termsVersion: '1',
      termsUrl: undefined,
      sessionDays: 7,
      appName: 'Courtside',
      links: { template: undefined, app: undefined, public: undefined },
      preferenceDefaults: {
        emailTypes: new Set(['game_cancelled', 'game_reminder']),
        quietHours: { enabled: false, from: '22:00', to: '08:00' },
        timeZone: 'Europe/Paris',
      },
      emailAfterMs: 20_000,
      emailAfterUrgentMs: 20_000,
      pushHosts: [
        { name: 'fcm.googleapis.com', isSuffix: false, port: 443 },
        { name: 'updates.push.services.mozilla.com', isSuffix: false, port: 443 },
        { name: 'push.apple.com', isSuffix: true, port: 443 },
        { name: 'notify.windows.com', isSuffix: true, port: 443 },
      ],
      pushConcurrency: 16,
      vapidPrivateKeys: [],
      vapidSubject: 'mailto:no-reply@localhost',
      web: true,
      serves: true,
      works: true,
      logLevel: 'info',
      devMailbox: false,
      stopDelayMs: 0,
    })
  })

  test('a blank setting counts as unset', () => {
    assert.deepEqual(readConfig({ PORT: ' ', JWT_SECRET: '', ROLE: '' }), readConfig({}))
  })

  test('the configuration is frozen', () => {
    assert.throws(() => Object.assign(readConfig({}), { port: 1 }), TypeError)
  })
})

describe('a production node', () => {
  test('readConfig parses lists, durations and the role', () => {
    const config = readConfig({
      ...PRODUCTION,
      JWT_SECRET: `${SECRET}, ${SECRET}2`,
      TRUST_PROXY: '10.0.0.0/8,::1',
      CORS_ORIGINS: 'https://a.example, http://localhost:5173',
      REMINDER_OFFSETS: '2d,90m,30s',
      ROLE: 'worker',
      STOP_DELAY: '5s',
    })
    assert.deepEqual(config.jwtSecrets, [SECRET, `${SECRET}2`])
    assert.deepEqual(config.trustProxy, ['10.0.0.0/8', '::1'])
    assert.deepEqual(config.reminderOffsets, [{ days: 2 }, { ms: 5_400_000 }, { ms: 30_000 }])
    assert.deepEqual([config.serves, config.works], [false, true])
    assert.equal(config.stopDelayMs, 5_000)
  })
})

describe('the budgets of guesses and the limits on sign-ups', () => {
  const budgets = (env: Record<string, string>) => readConfig({ ...PRODUCTION, ...env }).guessBudgets
  const limits = (env: Record<string, string>) => readConfig({ ...PRODUCTION, ...env }).signUpLimits

  test('a node with a mail server has the default budgets and limits, and GUESS_BUDGETS changes any subset', () => {
    assert.deepEqual(budgets({}), { address: 10, network: 50, installation: 100 })
    assert.deepEqual(budgets({ GUESS_BUDGETS: 'installation=250' }), { address: 10, network: 50, installation: 250 })
    assert.deepEqual(budgets({ GUESS_BUDGETS: 'network = 5, address=3' }), {
      address: 3,
      network: 5,
      installation: 100,
    })
    assert.deepEqual(limits({}), { network: 60, installation: 600 })
    assert.deepEqual(limits({ SIGN_UP_LIMITS: '5, 50' }), { network: 5, installation: 50 })
  })

  test('`off` and the development mailbox switch the budgets and the limits off', () => {
    assert.deepEqual([budgets({ GUESS_BUDGETS: 'off' }), limits({ SIGN_UP_LIMITS: 'off' })], [undefined, undefined])
    const development = readConfig({ GUESS_BUDGETS: 'address=3', SIGN_UP_LIMITS: '5,50' })
    assert.deepEqual([development.guessBudgets, development.signUpLimits], [undefined, undefined])
  })
})

describe('faults', () => {
  const bad: [string, string][] = [
    ['PORT', '70000'],
    ['PORT', '3000x'],
    ['PORT', '-1'],
    ['DATABASE_URL', 'mysql://x/y'],
    ['DATABASE_URL', 'postgres://db.example:54x2/courtside'],
    ['DATABASE_URL', 'postgres://db.example:5432:5433/courtside'],
    ['DATABASE_URL', 'postgres://user:p/w@db.example/courtside'],
    ['DATABASE_SCHEMA', 'Courtside'],
    ['DATABASE_SCHEMA', 'a'.repeat(33)],
    ['DATABASE_SCHEMA', 'pg_courtside'],
    ['DATABASE_SCHEMA', 'information_schema'],
    ['SMTP_URL', 'http://mail'],
    ['DATABASE_URL', 'postgres://user:100%@host/db'],
    ['DATABASE_URL', 'postgres://user:a#b@host/db'],
    ['DATABASE_URL', 'postgres://host:99999/db'],
    ['SMTP_HELO_NAME', '-mail club'],
    ['MAIL_FROM', 'Padel Club'],
    ['MAIL_FROM', 'Club "4" <a@club.example>'],
    ['MAIL_FROM', 'Padel\tClub <a@club.example>'],
    ['WRITE_CONNECTIONS', '0'],
    ['MAIL_CONCURRENCY', '0'],
    ['MAIL_CONCURRENCY', 'many'],
    ['MAIL_FROM', 'a@club.example, b@club.example'],
    ['MAIL_FROM', 'Padel Club <club.example>'],
    ['JWT_SECRET', 'short'],
    ['JWT_SECRET', 'a'.repeat(40)],
    ['JWT_SECRET', 'changeme-changeme-changeme-changeme'],
    ['INTAKE_KEYS', `${SECRET},short`],
    ['TRUST_PROXY', '10.0.0.0/33'],
    ['TRUST_PROXY', '0.0.0.0/0'],
    ['TRUST_PROXY', '10.0.0.0/7'],
    ['TRUST_PROXY', '127.0.0.1,::/0'],
    ['TRUST_PROXY', '2000::/15'],
    ['TRUST_PROXY', '::ffff:0.0.0.0/96'],
    ['TRUST_PROXY', '64:ff9b::/96'],
    ['TRUST_PROXY', '2002::/16'],
    ['TRUST_PROXY', '64::/16'],
    ['TRUST_PROXY', '64:ff9b:1::/48'],
    ['TRUST_PROXY', '64:ff9b:1:2::/96'],
    ['TRUST_PROXY', '2001::/32'],
    ['TRUST_PROXY', '2001:0:a00:1::/64'],
    ['TRUST_PROXY', 'proxy.example'],
    ['SHARED_NETWORKS', '203.0.113.0/33'],
    ['SHARED_NETWORKS', '0.0.0.0/1'],
    ['CORS_ORIGINS', '*'],
    ['CORS_ORIGINS', 'https://*.a.example'],
    ['CORS_ORIGINS', 'capacitor://localhost/'],
    ['CORS_ORIGINS', 'file://a.example'],
    ['CORS_ORIGINS', 'null'],
    ['CORS_ORIGINS', 'https://a.example/path'],
    ['METRICS_TOKEN', 'short'],
    ['THROTTLE_REQUEST_OTP', '0'],
    ['GUESS_BUDGETS', 'address=0'],
    ['GUESS_BUDGETS', 'adress=10'],
    ['GUESS_BUDGETS', 'address=10;network=50'],
    ['GUESS_BUDGETS', '10,50,100'],
    ['GUESS_BUDGETS', 'none'],
    ['GUESS_BUDGETS', 'address=10,network=50,address=1000000'],
    ['SIGN_UP_LIMITS', '60'],
    ['SIGN_UP_LIMITS', '0,600'],
    ['SIGN_UP_LIMITS', '60,600,6000'],
    ['TERMS_URL', 'club.example/terms'],
    ['TERMS_URL', 'javascript:alert(1)'],
    ['SESSION_DAYS', '0'],
    ['SESSION_DAYS', '366'],
    ['APP_NAME', 'Padel\u0007Club'],
    ['APP_NAME', 'Padel\u202eClub'],
    ['APP_NAME', 'x'.repeat(61)],
    ['APP_URL', 'app.example'],
    ['APP_URL', 'javascript:alert(1)//'],
    ['APP_URL', 'http://app.example'],
    ['APP_URL', 'https://user:pass@app.example'],
    ['PUBLIC_URL', 'https://courtside.example/?a=1'],
    ['PUBLIC_URL', 'http://courtside.example'],
    ['PUBLIC_URL', 'https://courtside.example/a*'],
    ['PUBLIC_URL', 'https://courtside.example/%E9'],
    ['LINK_TEMPLATE', '/games/{game_id}'],
    ['LINK_TEMPLATE', 'http://app.example/games/{game_id}'],
    ['LINK_TEMPLATE', 'https://app.example/games/{title}'],
    ['LINK_TEMPLATE', 'https://app.example/games/{game_id'],
    ['LINK_TEMPLATE', 'https://app{game_id}.example/'],
    ['LINK_TEMPLATE', 'https://{game_id}@app.example/'],
    ['EMAIL_TYPES', 'game_canceled'],
    ['EMAIL_TYPES', 'game_cancelled,none'],
    ['EMAIL_AFTER', '25h'],
    ['EMAIL_AFTER_URGENT', '90'],
    ['PUSH_HOSTS', '*'],
    ['PUSH_HOSTS', '*.com'],
    ['PUSH_HOSTS', 'https://push.example'],
    ['PUSH_HOSTS', 'push.example:70000'],
    ['PUSH_CONCURRENCY', '0'],
    ['VAPID_PRIVATE_KEY', 'A'.repeat(42)],
    // Zero, the order of the curve, unused bits that are not 0, and a public key.
    ['VAPID_PRIVATE_KEY', 'A'.repeat(43)],
    ['VAPID_PRIVATE_KEY', '_____wAAAAD__________7zm-q2nF56E87nKwvxjJVE'],
    ['VAPID_PRIVATE_KEY', `${VAPID_KEY.slice(0, -1)}5`],
    ['VAPID_PRIVATE_KEY', `${VAPID_KEY},${'B'.repeat(87)}`],
    ['VAPID_SUBJECT', 'club@club.example'],
    ['VAPID_SUBJECT', 'http://club.example'],
    ['VAPID_SUBJECT', 'mailto:admin@localhost'],
    ['VAPID_SUBJECT', 'https://127.0.0.1/'],
    ['REMINDER_OFFSETS', '1w'],
    ['REMINDER_OFFSETS', '0d'],
    ['TIMEZONE', 'Mars/Olympus'],
    ['RETENTION_DAYS', '1.5'],
    ['WEB', 'yes'],
    ['ROLE', 'boss'],
    ['LOG_LEVEL', 'loud'],
    ['DEV_MAILBOX', 'true'],
    ['STOP_DELAY', '5'],
    ['STOP_DELAY', '61s'],
  ]
  for (const [name, value] of bad) {
    test(`the fault for ${name}=${value.slice(0, 30)} names the setting and does not repeat the value`, () => {
      const faults = readFaults({ ...PRODUCTION, [name]: value })
      assert.equal(faults.length, 1)
      assert.ok(faults[0]!.startsWith(`${name}: `))
      assert.ok(value.length < 10 || !faults[0]!.includes(value))
    })
  }

  test('the error lists all faults, not only the first fault', () => {
    const faults = readFaults({ PORT: 'x', ROLE: 'x', TIMEZONE: 'x', LOG_LEVEL: 'x' })
    assert.deepEqual(
      faults.map(fault => fault.split(':')[0]),
      ['ROLE', 'TIMEZONE', 'PORT', 'LOG_LEVEL'],
    )
  })

  test('DATABASE_URL may name one host or several, with or without ports, a user and options', () => {
    for (const url of [
      'postgres://db.example',
      'postgresql://user:p%40ss:word@db.example:5432/courtside?sslmode=verify-full',
      'postgres://user@one.example:5432,[2001:db8::1]:5433,three.example/courtside',
      'postgres:///courtside?host=/run/postgresql',
    ]) {
      assert.equal(readConfig({ ...PRODUCTION, DATABASE_URL: url }).databaseUrl, url)
    }
  })

  test('TRUST_PROXY accepts ranges up to /8 (IPv4) and /16 (IPv6)', () => {
    const ranges = ['10.0.0.0/8', 'fd00::/16', '::ffff:10.0.0.0/104', '2002:a00::/24', '192.0.2.1', 'fc00::/16']
    assert.deepEqual(readConfig({ ...PRODUCTION, TRUST_PROXY: ranges.join() }).trustProxy, ranges)
    assert.match(readFaults({ ...PRODUCTION, TRUST_PROXY: '0.0.0.0/1' })[0]!, /^TRUST_PROXY: must not contain a range/)
  })

  test('the error for one setting does not mention another setting', () => {
    for (const [setting, value, expected] of [
      ['TRUST_PROXY', '0.0.0.0/1', /; list only your own proxies$/],
      ['SHARED_NETWORKS', '0.0.0.0/1', /; list only networks whose people you know$/],
      ['SMTP_URL', 'https://mail.example', /must be an smtp:\/\/ or smtps:\/\/ URL$/],
      ['TERMS_URL', 'smtp://club.example', /must be an http:\/\/ or https:\/\/ URL$/],
    ] as const) {
      const faults = readFaults({ ...PRODUCTION, [setting]: value })
      assert.match(faults.join(), expected)
    }
  })

  test('a budget that GUESS_BUDGETS names twice is a fault, also if both values are equal', () => {
    for (const GUESS_BUDGETS of ['network=5,network=5', 'network=5, network = 50', 'address=3,network=5,address=3'])
      assert.match(
        readFaults({ ...PRODUCTION, GUESS_BUDGETS }).join(),
        /^GUESS_BUDGETS: must name each budget only once/,
      )
  })

  test('MAIL_FROM accepts one address, with or without a name before it', () => {
    for (const MAIL_FROM of ['a@club.example', 'Padel Club <a@club.example>', '"Padel, Club" <a@club.example>']) {
      assert.equal(readConfig({ MAIL_FROM }).mailFrom, MAIL_FROM)
    }
  })

  test('MAIL_FROM puts a name with special characters in quotes', () => {
    for (const [MAIL_FROM, expected] of [
      ['Club 4: Padel <a@club.example>', '"Club 4: Padel" <a@club.example>'],
      ['Padel (Paris) <a@club.example>', '"Padel (Paris)" <a@club.example>'],
      ['"Padel" <a@club.example>', 'Padel <a@club.example>'],
      ['<a@club.example>', '<a@club.example>'],
    ]) {
      assert.equal(readConfig({ MAIL_FROM }).mailFrom, expected)
    }
  })

  test('CORS_ORIGINS accepts the origins of web pages, apps and browser extensions', () => {
    const origins = ['https://a.example:8443', 'http://localhost', 'capacitor://localhost', 'ionic://localhost']
    origins.push('tauri://localhost', 'chrome-extension://abcdefghijklmnop')
    assert.deepEqual(readConfig({ ...PRODUCTION, CORS_ORIGINS: origins.join() }).corsOrigins, origins)
  })

  test('the error lists missing settings together with faulty settings', () => {
    const listFaultyNames = (env: Record<string, string>) => readFaults(env).map(fault => fault.split(/:| or /)[0])
    assert.deepEqual(listFaultyNames({ PORT: 'x', DATABASE_URL: PRODUCTION.DATABASE_URL }), [
      'PORT',
      'JWT_SECRET',
      'INTAKE_KEYS',
      'SMTP_URL',
    ])
    // If DATABASE_URL is set, INTAKE_KEYS and SMTP_URL are mandatory. A faulty setting counts as set, so a faulty
    // DATABASE_URL makes them mandatory too.
    const unread = { DATABASE_URL: 'mysql://x/y', JWT_SECRET: 'short' }
    assert.deepEqual(listFaultyNames(unread), ['DATABASE_URL', 'JWT_SECRET', 'INTAKE_KEYS', 'SMTP_URL'])
    assert.deepEqual(listFaultyNames({ HOST: '0.0.0.0', DEV_MAILBOX: 'true' }), ['DEV_MAILBOX'])
  })

  test('JWT_SECRET and INTAKE_KEYS are required if DATABASE_URL is set', () => {
    const { JWT_SECRET: _, INTAKE_KEYS: __, ...rest } = PRODUCTION
    assert.deepEqual(
      readFaults(rest).map(fault => fault.split(':')[0]),
      ['JWT_SECRET', 'INTAKE_KEYS'],
    )
  })
})

describe('names, links, pushes and mails about unread notifications', () => {
  test('a node with a mail server has quiet hours and waits longer before it mails', () => {
    const config = readConfig(PRODUCTION)
    assert.equal(config.isDevelopment, false)
    assert.deepEqual(config.preferenceDefaults.quietHours, { enabled: true, from: '22:00', to: '08:00' })
    assert.deepEqual([config.emailAfterMs, config.emailAfterUrgentMs], [900_000, 120_000])
  })

  test('the settings are parsed, and a URL to which paths are appended has no slash at its end', () => {
    const config = readConfig({
      ...PRODUCTION,
      APP_NAME: 'Padel Club ⚽',
      APP_URL: 'https://app.example/',
      LINK_TEMPLATE: 'https://app.example/games/{game_id}?score={score_id}#{starts_at}',
      PUBLIC_URL: 'https://courtside.example/inbox/',
      SESSION_DAYS: '365',
      EMAIL_TYPES: 'game_full, game_reminder',
      EMAIL_AFTER: '1h',
      EMAIL_AFTER_URGENT: '30s',
      PUSH_HOSTS: 'Push.example, *.push.example:8443, 127.0.0.1:9999',
      VAPID_PRIVATE_KEY: `${VAPID_KEY}, ${VAPID_KEY.replace('y', 'x')}`,
      MAIL_FROM: 'Club <club@club.example>',
    })
    assert.equal(config.appName, 'Padel Club ⚽')
    assert.equal(config.links.app, 'https://app.example')
    assert.equal(config.links.public, 'https://courtside.example/inbox')
    assert.equal(config.sessionDays, 365)
    assert.deepEqual(config.preferenceDefaults.emailTypes, new Set(['game_full', 'game_reminder']))
    assert.deepEqual([config.emailAfterMs, config.emailAfterUrgentMs], [3_600_000, 30_000])
    assert.deepEqual(config.pushHosts, [
      { name: 'push.example', isSuffix: false, port: 443 },
      { name: 'push.example', isSuffix: true, port: 8443 },
      { name: '127.0.0.1', isSuffix: false, port: 9999 },
    ])
    assert.deepEqual(config.vapidPrivateKeys, [VAPID_KEY, VAPID_KEY.replace('y', 'x')])
    assert.equal(config.vapidSubject, 'mailto:club@club.example')
  })

  test('PUBLIC_URL becomes ASCII, because mail headers contain it', () => {
    const read = (url: string) => readConfig({ ...PRODUCTION, PUBLIC_URL: url }).links.public
    assert.equal(read('https://clüb.example/é>/'), 'https://xn--clb-ioa.example/%C3%A9%3E')
    assert.equal(read('https://club.example?'), 'https://club.example')
    assert.equal(read('https://club.example/#'), 'https://club.example')
  })

  test('EMAIL_TYPES=none turns the default off for all types', () => {
    assert.deepEqual(readConfig({ EMAIL_TYPES: 'none' }).preferenceDefaults.emailTypes, new Set())
  })

  test('without https, links may lead only to this machine, or be used with the development mailbox', () => {
    const local = { APP_URL: 'http://localhost:5173', PUBLIC_URL: 'http://[::1]:3000' }
    assert.deepEqual(readFaults({ ...PRODUCTION, ...local }), [])
    assert.deepEqual(readFaults({ LINK_TEMPLATE: 'http://app.example/{game_id}' }), [])
  })

  test('VAPID_PRIVATE_KEY requires VAPID_SUBJECT if MAIL_FROM is at localhost', () => {
    const env = { ...PRODUCTION, VAPID_PRIVATE_KEY: VAPID_KEY }
    assert.match(readFaults(env).join(), /^VAPID_SUBJECT: required/)
    assert.deepEqual(readFaults({ ...env, VAPID_SUBJECT: 'mailto:admin@club.example' }), [])
    assert.deepEqual(readFaults({ ...env, MAIL_FROM: 'no-reply@club.example' }), [])
  })
})

describe('the development mailbox', () => {
  const exposing: Record<string, string>[] = [
    { HOST: '0.0.0.0' },
    { HOST: '::' },
    { HOST: '192.168.1.4' },
    { TRUST_PROXY: '10.0.0.1' },
    { NODE_ENV: 'production' },
    { DATABASE_URL: PRODUCTION.DATABASE_URL, JWT_SECRET: SECRET, INTAKE_KEYS: SECRET },
  ]
  for (const env of exposing) {
    test(`${Object.entries(env)[0]!.join('=')} requires either SMTP_URL or DEV_MAILBOX=on`, () => {
      assert.match(readFaults(env).join(), /^SMTP_URL\b/)
      assert.deepEqual(readFaults({ ...env, DEV_MAILBOX: 'on' }), [])
      assert.deepEqual(readFaults({ ...env, SMTP_URL: PRODUCTION.SMTP_URL }), [])
    })
  }

  for (const host of ['127.0.0.1', '127.9.9.9', '::1', 'localhost']) {
    test(`the development mailbox is allowed on ${host}`, () => assert.deepEqual(readFaults({ HOST: host }), []))
  }

  test('the development mailbox is refused in a process with only one role', () => {
    for (const ROLE of ['web', 'worker'])
      assert.match(readFaults({ ROLE, DEV_MAILBOX: 'on' }).join(), /^SMTP_URL\b.*ROLE/)
  })
})

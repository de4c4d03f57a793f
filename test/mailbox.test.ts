import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { after, before, suite, test } from 'node:test'
import Fastify, { type FastifyInstance } from 'fastify'
import { notFound } from '../src/errors.ts'
import { sendFailure } from '../src/http/failure.ts'
import { createMailbox } from '../src/mail/mailbox.ts'
import { mailboxRoutes } from '../src/mail/mailbox-routes.ts'

const LOCAL = { host: 'localhost:3000' }
const SENT_AT = new Date('2026-11-28T10:00:00.900Z')

suite('the development mailbox', () => {
  const mailbox = createMailbox(() => SENT_AT)
  // With `trustProxy: true`, Fastify reads `request.ip` from an HTTP header, so any client can forge it. The tests
  // check that the mailbox does not rely on `request.ip`.
  const app: FastifyInstance = Fastify({ trustProxy: true })
  before(async () => {
    app.setErrorHandler(sendFailure)
    app.setNotFoundHandler(() => {
      throw notFound()
    })
    await app.register(mailboxRoutes, { mailbox })
    for (let count = 1; count <= 101; count += 1) {
      await mailbox.send({ to: 'zoe@example.com', subject: `<b>${count}</b>`, text: 'a & "b"', html: '<p>a</p>' })
    }
  })
  after(() => app.close())

  const get = (url: string, headers: Record<string, string> = LOCAL, remoteAddress = '127.0.0.1') =>
    app.inject({ url, query: { key: mailbox.key }, headers, remoteAddress })

  test('/dev/mailbox.json lists the latest 100 mails, newest first', async () => {
    const answer = await get('/dev/mailbox.json')
    assert.equal(answer.statusCode, 200)
    assert.equal(answer.headers['cache-control'], 'no-store')
    const mails = answer.json()
    assert.equal(mails.length, 100)
    assert.deepEqual(mails[0], {
      to: 'zoe@example.com',
      subject: '<b>101</b>',
      text: 'a & "b"',
      html: '<p>a</p>',
      sent_at: '2026-11-28T10:00:00+00:00',
    })
    assert.equal(mails[99].subject, '<b>2</b>')
  })

  test('/dev/mailbox escapes the content of the mails, and the page has no scripts', async () => {
    const answer = await get('/dev/mailbox')
    assert.equal(answer.statusCode, 200)
    assert.equal(answer.headers['content-type'], 'text/html; charset=utf-8')
    assert.match(String(answer.headers['content-security-policy']), /^default-src 'none'; style-src 'sha256-[^' ]+'; /)
    assert.ok(answer.body.includes('<h2>&#60;b&#62;101&#60;/b&#62;</h2>'))
    assert.ok(answer.body.includes('<pre>a &#38; &#34;b&#34;</pre>'))
    assert.ok(answer.body.includes('<pre>&#60;p&#62;a&#60;/p&#62;</pre>'))
    assert.ok(!answer.body.includes('<script'))
  })

  for (const [host, peer] of [
    ['localhost', '127.0.0.1'],
    ['LocalHost:80', '::1'],
    ['127.0.0.1:3000', '::ffff:127.0.0.1'],
    ['127.8.8.8', '127.9.9.9'],
    ['[::1]:3000', '::1'],
  ] as const) {
    test(`the mailbox answers a request from ${peer} with the Host header ${host}`, async () => {
      assert.equal((await get('/dev/mailbox.json', { host }, peer)).statusCode, 200)
    })
  }

  test('without the key, or with a wrong key, the mailbox answers with 404, like an unknown path', async () => {
    const unknown = await get('/dev/nothing')
    const { key } = mailbox
    for (const query of [
      '',
      '?',
      '?key=',
      `?key=${key.slice(1)}`,
      `?key=${key}x`,
      `?KEY=${key}`,
      `?key=x&key=${key}`,
    ]) {
      for (const path of ['/dev/mailbox', '/dev/mailbox.json']) {
        const answer = await app.inject({ url: path + query, headers: LOCAL, remoteAddress: '127.0.0.1' })
        assert.equal(answer.statusCode, 404, query)
        assert.equal(answer.body, unknown.body)
      }
    }
  })

  test('two mailboxes have different keys, and the links of the page contain the key', async () => {
    assert.notEqual(createMailbox(() => SENT_AT).key, mailbox.key)
    assert.match(mailbox.key, /^[\w-]{43}$/)
    const { body } = await get('/dev/mailbox')
    for (const path of ['/dev/mailbox', '/dev/mailbox.json']) assert.ok(body.includes(`"${path}?key=${mailbox.key}"`))
  })

  test('the mailbox answers a request over HTTP/1.0 with 404, because nginx forwards requests over HTTP/1.0', async () => {
    const { port } = new URL(await app.listen({ port: 0, host: '127.0.0.1' }))
    for (const [version, status] of [
      ['1.1', 200],
      ['1.0', 404],
    ] as const) {
      const socket = connect(Number(port), '127.0.0.1')
      socket.end(
        `GET /dev/mailbox.json?key=${mailbox.key} HTTP/${version}\r\nHost: localhost\r\nConnection: close\r\n\r\n`,
      )
      assert.ok((await text(socket)).startsWith(`HTTP/1.1 ${status} `), version)
    }
  })

  const refusedCallers: Record<string, [Record<string, string>, string?]> = {
    'a request from another machine': [LOCAL, '192.0.2.7'],
    'a request from another machine over IPv6': [LOCAL, '2001:db8::1'],
    'a request from another machine with an IPv4-mapped address': [LOCAL, '::ffff:192.0.2.7'],
    'a request with another Host header': [{ host: 'evil.example' }],
    'a request with a Host header that starts with localhost': [{ host: 'localhost.evil.example' }],
    'a request with credentials in the Host header': [{ host: 'evil@localhost' }],
    'a request whose Host header is an address outside loopback': [{ host: '192.0.2.7:3000' }],
    'a request with an unusual notation of a loopback address in the Host header': [{ host: '127.1' }],
    'a request with a malformed Host header': [{ host: ':3000' }],
    'a request with X-Forwarded-For': [{ ...LOCAL, 'x-forwarded-for': '127.0.0.1' }],
    'a request with X-Forwarded-Host': [{ ...LOCAL, 'x-forwarded-host': 'localhost' }],
    'a request with X-Forwarded-Anything': [{ ...LOCAL, 'x-forwarded-anything': '' }],
    'a request with Forwarded': [{ ...LOCAL, forwarded: 'for=127.0.0.1' }],
    'a request with X-Real-IP': [{ ...LOCAL, 'x-real-ip': '127.0.0.1' }],
    'a request with Via': [{ ...LOCAL, via: '1.1 proxy' }],
    ...Object.fromEntries(
      [
        ...[
          'CF-Connecting-IP',
          'CF-Ray',
          'CDN-Loop',
          'True-Client-IP',
          'X-Client-IP',
          'Client-IP',
          'X-Cluster-Client-IP',
        ],
        ...[
          'X-Envoy-External-Address',
          'X-Original-Forwarded-For',
          'X-Azure-ClientIP',
          'Fastly-Client-IP',
          'X-Forwarded',
        ],
        ...['Fly-Client-IP', 'DO-Connecting-IP', 'X-AppEngine-User-IP', 'X-ProxyUser-Ip', 'WL-Proxy-Client-IP'],
      ].map(name => [`a request with ${name}`, [{ ...LOCAL, [name.toLowerCase()]: '127.0.0.1' }]]),
    ),
  }
  for (const [title, [headers, peer]] of Object.entries(refusedCallers)) {
    test(`the mailbox answers ${title} with 404, like an unknown path`, async () => {
      const unknown = await get('/dev/nothing', headers, peer)
      assert.equal(unknown.statusCode, 404)
      for (const url of ['/dev/mailbox', '/dev/mailbox.json']) {
        for (const method of ['GET', 'HEAD'] as const) {
          const answer = await app.inject({
            method,
            url,
            query: { key: mailbox.key },
            headers,
            remoteAddress: peer ?? '127.0.0.1',
          })
          assert.equal(answer.statusCode, 404)
          if (method === 'GET') assert.equal(answer.body, unknown.body)
          assert.equal(answer.headers['cache-control'], undefined)
        }
      }
    })
  }
})

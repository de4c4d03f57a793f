import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createFindEndpoint, isAllowedAddress } from '../src/reach/push-hosts.ts'
import { SETTINGS } from '../src/settings.ts'

const find = createFindEndpoint(SETTINGS.PUSH_HOSTS.parse(SETTINGS.PUSH_HOSTS.default))
const findWith = (hosts: string, port?: number) => createFindEndpoint(SETTINGS.PUSH_HOSTS.parse(hosts), () => port)

describe('with the default PUSH_HOSTS', () => {
  for (const endpoint of [
    'https://fcm.googleapis.com/fcm/send/abc:def',
    'https://updates.push.services.mozilla.com/wpush/v2/gAAAA',
    'https://web.push.apple.com/QGl',
    'https://db5p.notify.windows.com/w/?token=a%2Bb',
    'https://FCM.googleapis.com:443/x',
  ]) {
    test(`${endpoint} is an endpoint`, () => assert.equal(find(endpoint)?.isLocal, false))
  }

  for (const [reason, endpoint] of [
    ['another scheme', 'http://fcm.googleapis.com/x'],
    ['another scheme', 'ftp://fcm.googleapis.com/x'],
    ['another scheme', 'javascript:alert(1)'],
    ['another host', 'https://example.com/x'],
    ['a host below an exact name', 'https://evil.fcm.googleapis.com/x'],
    ['a host that ends in the same letters', 'https://evilfcm.googleapis.com/x'],
    ['a host that begins with a listed name', 'https://fcm.googleapis.com.evil.example/x'],
    ['the name of a suffix itself', 'https://push.apple.com/x'],
    ['a dot at the end', 'https://fcm.googleapis.com./x'],
    ['another port', 'https://fcm.googleapis.com:8443/x'],
    ['the port 0', 'https://fcm.googleapis.com:0/x'],
    ['a user', 'https://fcm.googleapis.com@evil.example/x'],
    ['a user and a listed host', 'https://user:secret@fcm.googleapis.com/x'],
    ['a fragment', 'https://fcm.googleapis.com/x#y'],
    ['an empty fragment', 'https://fcm.googleapis.com/x#'],
    ['an empty label', 'https://.push.apple.com/x'],
    ['an empty label', 'https://web..push.apple.com/x'],
    ['this machine', 'https://localhost/x'],
    ['this machine', 'https://127.0.0.1/x'],
    ['this machine', 'https://[::1]/x'],
    ['a private address', 'https://10.0.0.1/x'],
    ['the address of a metadata service', 'http://169.254.169.254/latest/meta-data/'],
    ['a public address', 'https://8.8.8.8/x'],
    ['an address in an unusual notation', 'https://0x7f000001/x'],
    ['no URL', 'fcm.googleapis.com/x'],
    ['an empty text', ''],
  ] as const) {
    test(`${endpoint} is refused: ${reason}`, () => assert.equal(find(endpoint), undefined))
  }
})

test('a listed port counts, and the default port then does not', () => {
  const findListed = findWith('push.example:8443')
  assert.ok(findListed('https://push.example:8443/x'))
  assert.equal(findListed('https://push.example/x'), undefined)
})

test('this machine is an endpoint only if PUSH_HOSTS names it with the port, and then with http too', () => {
  const findListed = findWith('localhost:4000,127.0.0.1:4001')
  for (const endpoint of ['http://localhost:4000/x', 'https://localhost:4000/x', 'http://127.0.0.1:4001/x']) {
    assert.equal(findListed(endpoint)?.isLocal, true, endpoint)
  }
  for (const endpoint of ['http://localhost:4001/x', 'http://localhost/x', 'http://[::1]:4000/x']) {
    assert.equal(findListed(endpoint), undefined, endpoint)
  }
  assert.equal(findWith('push.example:4000')('http://push.example:4000/x'), undefined)
})

test('an address passes only if PUSH_HOSTS lists it, and only if it is public', () => {
  const findListed = findWith('8.8.8.8,10.0.0.1,169.254.169.254')
  assert.ok(findListed('https://8.8.8.8/x'))
  assert.equal(findListed('https://10.0.0.1/x'), undefined)
  assert.equal(findListed('https://169.254.169.254/x'), undefined)
  assert.equal(findWith('*.0.0.1')('https://127.0.0.1/x'), undefined)
})

test('a process with the development push service calls this machine at its port', () => {
  const findListed = findWith('fcm.googleapis.com', 3000)
  for (const host of ['localhost', '127.0.0.1', '[::1]']) {
    assert.equal(findListed(`http://${host}:3000/x`)?.isLocal, true)
    assert.equal(findListed(`http://${host}:3001/x`), undefined)
  }
  assert.equal(findListed('http://192.168.0.1:3000/x'), undefined)
})

describe('a socket of a push may not connect to', () => {
  for (const [reason, ...addresses] of [
    ['this machine', '127.0.0.1', '127.8.9.10', '::1', '0.0.0.0', '::'],
    ['a private network', '10.1.2.3', '172.16.0.1', '172.31.255.255', '192.168.1.1', 'fc00::1', 'fd12:3456::1'],
    ['a link-local address', '169.254.169.254', 'fe80::1', 'fec0::1'],
    ['a carrier-grade NAT', '100.64.0.1', '100.127.255.255'],
    ['an IPv4-mapped private address', '::ffff:127.0.0.1', '::ffff:10.0.0.1', '::ffff:a9fe:a9fe'],
    ['an IPv4-compatible address', '::127.0.0.1', '::a00:1', '::808:808'],
    ['a NAT64 of a private address', '64:ff9b::10.0.0.1', '64:ff9b::7f00:1', '64:ff9b::a9fe:a9fe'],
    ['a local NAT64', '64:ff9b:1::10.0.0.1', '64:ff9b:1:a00:0:100::'],
    ['an IPv4-translated address', '::ffff:0:10.0.0.1'],
    ['6to4 of a private address', '2002:a00:1::1', '2002:7f00:1::'],
    ['Teredo of a private address', '2001:0:4136:e378:8000:63bf:f5ff:fffe'],
    ['a group', '224.0.0.1', '255.255.255.255', 'ff02::1'],
    ['a reserved address', '240.0.0.1', '192.0.2.1', '198.18.0.1', '203.0.113.1', '2001:db8::1', '100::1', '4000::1'],
    ['no address', '', 'localhost', '127.1', '1.2.3.4.5'],
  ]) {
    test(`${reason}: ${addresses.join(', ')}`, () => {
      for (const address of addresses) assert.equal(isAllowedAddress(address, false), false, address)
    })
  }

  test('a public address, if the host of the endpoint is this machine', () => {
    for (const address of ['8.8.8.8', '10.0.0.1', '2a00:1450:4007::1']) {
      assert.equal(isAllowedAddress(address, true), false, address)
    }
  })
})

test('a socket of a push may connect to the hosts of the internet', () => {
  for (const address of ['8.8.8.8', '17.57.12.1', '2a00:1450:4007:80e::200a', '::ffff:8.8.8.8', '64:ff9b::8.8.8.8']) {
    assert.equal(isAllowedAddress(address, false), true, address)
  }
  for (const address of ['127.0.0.1', '::1', '::ffff:127.0.0.1']) assert.equal(isAllowedAddress(address, true), true)
})

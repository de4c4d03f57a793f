import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { Courtside, localStorageStorage, memoryStorage, type TokenStorage } from 'courtside-client'

/**
 * Adds `localStorage` and storage events to Node, as a browser page has them.
 * @returns `items`, the stored items, and the function `sendChange(key)`. The function fires the storage event that a
 * page gets when another tab has changed the item `key`. If `key` is null, the other tab has removed all items.
 */
function installPage(t: TestContext, getLocalStorage?: () => unknown) {
  const items = new Map<string, string>()
  const tab = new EventTarget()
  const localStorage = {
    getItem: (key: string) => items.get(key) ?? null,
    setItem: (key: string, value: string) => void items.set(key, value),
    removeItem: (key: string) => void items.delete(key),
  }
  const given = {
    localStorage: { get: getLocalStorage ?? (() => localStorage) },
    addEventListener: { value: tab.addEventListener.bind(tab) },
    removeEventListener: { value: tab.removeEventListener.bind(tab) },
  }
  for (const [name, descriptor] of Object.entries(given)) {
    const before = Object.getOwnPropertyDescriptor(globalThis, name)
    Object.defineProperty(globalThis, name, { ...descriptor, configurable: true })
    t.after(() => (before ? Object.defineProperty(globalThis, name, before) : Reflect.deleteProperty(globalThis, name)))
  }
  const sendChange = (key: string | null) => tab.dispatchEvent(Object.assign(new Event('storage'), { key }))
  return { items, sendChange }
}

async function checkBothKeys(storage: TokenStorage): Promise<void> {
  assert.deepEqual([await storage.get('token'), await storage.get('last_token')], [null, null])
  await storage.set('token', 'one')
  await storage.set('last_token', 'two')
  assert.deepEqual([await storage.get('token'), await storage.get('last_token')], ['one', 'two'])
  await storage.set('token', null)
  assert.deepEqual([await storage.get('token'), await storage.get('last_token')], [null, 'two'])
}

describe('the storages of the client', { timeout: 60_000 }, () => {
  test('memoryStorage stores the token and the last token', () => checkBothKeys(memoryStorage()))

  test('localStorageStorage stores the token and the last token under its prefix', async t => {
    const { items } = installPage(t)
    await checkBothKeys(localStorageStorage())
    assert.deepEqual([...items], [['courtside.last_token', 'two']])
    await checkBothKeys(localStorageStorage('club.'))
    assert.deepEqual([...items.keys()], ['courtside.last_token', 'club.last_token'])
  })

  test('localStorageStorage keeps the tokens in memory if the browser denies access to localStorage', t => {
    installPage(t, () => {
      throw new Error('Access is denied for this document.')
    })
    return checkBothKeys(localStorageStorage())
  })

  test('localStorageStorage keeps the tokens in memory if localStorage does not exist', t => {
    installPage(t, () => undefined)
    return checkBothKeys(localStorageStorage())
  })

  const failing = (fault: string, overrides: object): [string, object] => [fault, overrides]
  const quota = () => {
    throw new DOMException('The quota has been exceeded.', 'QuotaExceededError')
  }
  const faults = [
    failing('is full', { setItem: quota }),
    failing('throws on every use', { getItem: quota, setItem: quota, removeItem: quota }),
    failing('drops every value without an error', { setItem: () => {} }),
    failing('has no methods, as on some servers', { getItem: undefined, setItem: undefined, removeItem: undefined }),
  ]
  for (const [fault, overrides] of faults) {
    test(`localStorageStorage keeps the tokens in memory if localStorage ${fault}`, async t => {
      const items = new Map([['courtside.token', 'old']])
      installPage(t, () => ({
        getItem: (key: string) => items.get(key) ?? null,
        removeItem: (key: string) => void items.delete(key),
        ...overrides,
      }))
      const storage = localStorageStorage()
      await storage.set('token', null)
      await checkBothKeys(storage)
      if (fault === 'is full') assert.equal(items.has('courtside.token'), false, 'the old token must not come back')
    })
  }

  test('localStorageStorage can be created and used on a server, which has no events and no localStorage', async () => {
    const storage = localStorageStorage()
    storage.onChange!(() => {})()
    await checkBothKeys(storage)
  })

  test('if a storage throws, a right code signs the user in, and the session lasts as long as the client', async () => {
    const fail = async () => {
      throw new Error('the keychain is locked')
    }
    const storages: TokenStorage[] = [
      { get: fail, set: fail },
      { get: () => null, set: fail },
      { get: fail, set: () => {} },
      { ...memoryStorage(), onChange: () => assert.fail('no events') },
    ]
    for (const storage of storages) {
      let token: string | null = null
      const client = new Courtside({
        storage,
        fetch: async (_, init) => {
          token = new Headers(init?.headers).get('authorization')
          return Response.json({ access_token: 'a.b.c', is_new_user: false, data: { id: 1 } })
        },
      })
      client.onSignedOut(() => assert.fail('the session has not ended'))
      await client.verifyOtp({ email: 'a@example.com', code: '1234' })
      assert.equal(await client.signedIn(), true)
      await client.me()
      assert.equal(token, 'Bearer a.b.c')
    }
  })

  test('localStorageStorage reports that another tab changed the token, and ignores changes of other items', async t => {
    const { sendChange } = installPage(t)
    let changes = 0
    const off = localStorageStorage().onChange!(() => {
      changes += 1
    })
    for (const key of ['courtside.last_token', 'club.token', 'theme']) sendChange(key)
    assert.equal(changes, 0)
    for (const key of ['courtside.token', null]) sendChange(key)
    assert.equal(changes, 2)
    off()
    sendChange('courtside.token')
    assert.equal(changes, 2)
  })

  test('if another tab removes the token, the client in this tab signs out', async t => {
    const { items, sendChange } = installPage(t)
    items.set('courtside.token', 'a.b.c')
    const client = new Courtside({ storage: localStorageStorage() })
    assert.equal(await client.signedIn(), true)
    const signedOut = new Promise<void>(resolve => {
      client.onSignedOut(resolve)
    })
    items.delete('courtside.token')
    sendChange('courtside.token')
    await signedOut
  })
})

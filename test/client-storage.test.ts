import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { Courtside, localStorageStorage, memoryStorage, type TokenStorage } from 'courtside-client'

/**
 * Node has no localStorage of a page: one in its place. @returns its content, and how the browser tells a tab that
 * another has changed a key, null when it has cleared all
 */
function page(t: TestContext, getLocalStorage?: () => unknown) {
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
  const changed = (key: string | null) => tab.dispatchEvent(Object.assign(new Event('storage'), { key }))
  return { items, changed }
}

async function keepsBoth(storage: TokenStorage): Promise<void> {
  assert.deepEqual([await storage.get('token'), await storage.get('last_token')], [null, null])
  await storage.set('token', 'one')
  await storage.set('last_token', 'two')
  assert.deepEqual([await storage.get('token'), await storage.get('last_token')], ['one', 'two'])
  await storage.set('token', null)
  assert.deepEqual([await storage.get('token'), await storage.get('last_token')], [null, 'two'])
}

describe('where tokens are kept', () => {
  test('memory', () => keepsBoth(memoryStorage()))

  test('localStorage, under a prefix', async t => {
    const { items } = page(t)
    await keepsBoth(localStorageStorage())
    assert.deepEqual([...items], [['courtside.last_token', 'two']])
    await keepsBoth(localStorageStorage('club.'))
    assert.deepEqual([...items.keys()], ['courtside.last_token', 'club.last_token'])
  })

  test('localStorage that the person has forbidden: memory', t => {
    page(t, () => {
      throw new Error('Access is denied for this document.')
    })
    return keepsBoth(localStorageStorage())
  })

  test('no localStorage at all: memory', t => {
    page(t, () => undefined)
    return keepsBoth(localStorageStorage())
  })

  test('another tab’s change of the token is told, others are not', async t => {
    const { changed } = page(t)
    let told = 0
    const off = localStorageStorage().onChange!(() => {
      told += 1
    })
    for (const key of ['courtside.last_token', 'club.token', 'theme']) changed(key)
    assert.equal(told, 0)
    for (const key of ['courtside.token', null]) changed(key)
    assert.equal(told, 2)
    off()
    changed('courtside.token')
    assert.equal(told, 2)
  })

  test('a token that another tab has removed ends the session here', async t => {
    const { items, changed } = page(t)
    items.set('courtside.token', 'a.b.c')
    const client = new Courtside({ storage: localStorageStorage() })
    assert.equal(await client.signedIn(), true)
    const signedOut = new Promise<void>(resolve => {
      client.onSignedOut(resolve)
    })
    items.delete('courtside.token')
    changed('courtside.token')
    await signedOut
  })
})

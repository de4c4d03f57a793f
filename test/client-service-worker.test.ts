import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type Shown, startWorker, WORKER_SCOPE } from './support/worker-scope.ts'

const NOTIFICATION = {
  title: 'Partie annulée',
  body: 'La partie de ce soir est annulée.',
  lang: 'fr',
  dir: 'auto',
  tag: 'game-42-urgent',
  navigate: 'https://club.example/app/games/42',
  app_badge: 3,
  renotify: true,
  data: { id: 7, type: 'game_cancelled', game_id: 42 },
}

describe('a push', () => {
  test('the service worker shows the notification of a push, and its count on the icon', async () => {
    const worker = startWorker()
    await worker.push(JSON.stringify({ web_push: 8030, app_badge: 3, notification: NOTIFICATION }))
    const { title, body, lang, dir, tag, renotify, navigate, data } = NOTIFICATION
    const options = { tag, body, lang, dir, renotify, data: { ...data, navigate } }
    assert.deepEqual(structuredClone(worker.shown), [{ title, options }])
    assert.deepEqual(worker.calls, ['badge 3'])
  })

  const badges: [message: object, calls: string[]][] = [
    [{ app_badge: 2 }, ['badge 2']],
    [{ app_badge: 0 }, ['clear']],
    [{ notification: { app_badge: 5 } }, ['badge 5']],
    [{ app_badge: 1, notification: { app_badge: 5 } }, ['badge 1']],
    [{}, []],
    ...[-1, 1.5, '3', null, {}].map((app_badge): [object, string[]] => [{ app_badge }, []]),
  ]
  for (const [message, calls] of badges) {
    test(`a push with ${JSON.stringify(message)} makes these calls for the badge: ${JSON.stringify(calls)}`, async () => {
      const worker = startWorker()
      await worker.push(JSON.stringify(message))
      assert.deepEqual(worker.calls, calls)
    })
  }

  test('a browser without badges, or one that refuses a badge, shows the banner', async () => {
    for (const options of [{ hasBadge: false }, { badge: () => Promise.reject(new Error('not allowed')) }]) {
      const worker = startWorker(options)
      await worker.push(JSON.stringify({ app_badge: 3, notification: NOTIFICATION }))
      assert.equal(worker.shown[0]!.title, 'Partie annulée')
    }
  })

  const malformed: [payload: string | null, what: string][] = [
    [null, 'no payload'],
    ['', 'an empty payload'],
    ['{', 'a payload that is no JSON'],
    ['null', 'null'],
    ['7', 'a number'],
    ['"text"', 'a text'],
    ['[]', 'an array'],
    ['{"notification":null}', 'no notification'],
    ['{"notification":{"title":7,"body":{},"tag":"","dir":"up","data":1,"renotify":1}}', 'members of wrong types'],
    ['{"notification":{"title":"","navigate":"javascript:alert(1)"}}', 'a link that is a script'],
    ['{"notification":{"navigate":"http://[broken"}}', 'a broken link'],
    ['{"notification":{"navigate":"data:text/html,x"}}', 'a link with data'],
  ]
  for (const [payload, what] of malformed) {
    test(`a push with ${what} shows the name of the site, and a click opens the app`, async () => {
      const worker = startWorker()
      await worker.push(payload)
      const [{ title, options }] = structuredClone(worker.shown) as [Shown]
      assert.equal(title, 'club.example')
      assert.deepEqual(options, {
        tag: 'courtside',
        body: undefined,
        lang: undefined,
        dir: 'auto',
        renotify: false,
        data: { navigate: WORKER_SCOPE },
      })
    })
  }

  test('a push without a body shows only its title', async () => {
    const worker = startWorker()
    const { body: _, ...withoutBody } = NOTIFICATION
    await worker.push(JSON.stringify({ notification: withoutBody }))
    const [{ title, options }] = worker.shown as [Shown]
    assert.deepEqual([title, options.body, options.tag], ['Partie annulée', undefined, 'game-42-urgent'])
  })
})

describe('a click on a banner', () => {
  const click = (navigate: unknown = NOTIFICATION.navigate) => {
    let closed = 0
    const notification = {
      data: { ...NOTIFICATION.data, navigate },
      close: () => {
        closed += 1
      },
    }
    return { event: { notification }, closed: () => closed }
  }
  const message = `post ${JSON.stringify({
    type: 'courtside-open',
    navigate: NOTIFICATION.navigate,
    data: NOTIFICATION.data,
  })}`

  test('without a window of the app, a click closes the banner and opens the link', async () => {
    const [worker, { event, closed }] = [startWorker(), click()]
    await worker.send('notificationclick', event)
    assert.deepEqual([worker.calls, closed()], [['open https://club.example/app/games/42'], 1])
  })

  test('with a window of the app, a click focuses it and sends it the notification', async () => {
    const worker = startWorker({ windows: [{ url: 'https://club.example/app/' }, { url: 'https://club.example/x' }] })
    await worker.send('notificationclick', click().event)
    assert.deepEqual(worker.calls, [message, 'focus https://club.example/app/'])
  })

  test('a window that shows the link already goes before the others', async () => {
    const worker = startWorker({ windows: [{ url: 'https://club.example/' }, { url: NOTIFICATION.navigate }] })
    await worker.send('notificationclick', click().event)
    assert.deepEqual(worker.calls, [message, `focus ${NOTIFICATION.navigate}`])
  })

  test('a link to another site opens a window, even beside a window of this site', async () => {
    const worker = startWorker({ windows: [{ url: 'https://club.example/' }] })
    await worker.send('notificationclick', click('https://other.example/games/42').event)
    assert.deepEqual(worker.calls, ['open https://other.example/games/42'])
  })

  test('if the browser refuses to focus the window, the link opens', async () => {
    const focus = () => Promise.reject(new Error('not allowed'))
    const worker = startWorker({ windows: [{ url: 'https://club.example/', focus }] })
    await worker.send('notificationclick', click().event)
    assert.deepEqual(worker.calls.at(-1), 'open https://club.example/app/games/42')
  })

  test('a click on a banner that the app itself has shown does nothing', async () => {
    const [worker, { event, closed }] = [startWorker({ windows: [{ url: 'https://club.example/' }] }), click(undefined)]
    event.notification.data = null as never
    await worker.send('notificationclick', event)
    assert.deepEqual([worker.calls, closed()], [[], 0])
  })
})

describe('a subscription that the browser has ended', () => {
  test('the service worker subscribes again with the same key', async () => {
    const worker = startWorker()
    await worker.send('pushsubscriptionchange', { oldSubscription: { options: { applicationServerKey: 'key' } } })
    assert.deepEqual(worker.calls, ['subscribe key'])
  })

  test('without the old subscription, the service worker leaves it to the start of the client', async () => {
    const worker = startWorker()
    await worker.send('pushsubscriptionchange', { oldSubscription: null })
    assert.deepEqual(worker.calls, [])
  })
})

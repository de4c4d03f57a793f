// The section about pushes in docs/integrating.md contains a body, a table of faults and the code of a service worker.
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { describe, test } from 'node:test'
import { harness, VAPID_KEY } from './support/app.ts'
import { makeUser } from './support/factories.ts'
import { newBrowserKeys, PUBLIC_KEY } from './support/push.ts'
import { startWorker } from './support/worker-scope.ts'

const h = harness({ VAPID_PRIVATE_KEY: VAPID_KEY })
const guide = await readFile(new URL('../docs/integrating.md', import.meta.url), 'utf8')
const section = guide.split('\n### Push in a web app\n')[1]!.split('\n### ')[0]!

/** Returns the only code block in a language that contains `text`. */
function findBlock(language: string, text: string): string {
  const blocks = [...section.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, 'g'))].map(
    ([, code]) => code!,
  )
  const [block, ...others] = blocks.filter(code => code.includes(text))
  assert.ok(block !== undefined && others.length === 0, text)
  return block
}

describe('the body for a subscription in docs/integrating.md', () => {
  const documented = JSON.parse(findBlock('json', 'p256dh'))
  const body = { ...documented, public_key: PUBLIC_KEY }
  const put = async (sent: object) => {
    const { token } = await makeUser(h)
    return h.call('PUT', '/api/v1/push/subscriptions', { token, body: sent })
  }

  test('is accepted with the key of the service, and the answer has the documented members', async () => {
    const { status, body: answer } = await put(body)
    assert.deepEqual([status, Object.keys(answer.data)], [200, ['id', 'created_at']])
    assert.equal((await put({ ...body, public_key: undefined, time_zone: undefined })).status, 200)
  })

  test('gets a 422 that names the member, for each member in the table', async () => {
    const faults: Record<string, object> = {
      endpoint: { endpoint: 'https://push.example/x' },
      keys: { keys: undefined },
      'keys.p256dh': { keys: { ...body.keys, p256dh: 'B' } },
      'keys.auth': { keys: { ...body.keys, auth: 'B' } },
      public_key: { public_key: newBrowserKeys().p256dh },
      time_zone: { time_zone: 'Europe/Atlantis' },
    }
    const listed = [...section.matchAll(/^ {3}\| `([\w.]+)` \|/gm)].map(([, member]) => member!)
    assert.deepEqual(listed, Object.keys(faults))
    for (const [member, fault] of Object.entries(faults)) {
      const { status, body: answer } = await put({ ...body, ...fault })
      assert.deepEqual([status, Object.keys(answer.errors)], [422, [member]])
    }
  })
})

describe('the service worker in docs/integrating.md', () => {
  const code = findBlock('js', 'notificationclick')
  const message = JSON.parse(findBlock('json', 'web_push'))
  const { title, navigate, data, ...others } = message.notification

  test('shows the documented push and sets the badge, also in a browser that refuses or lacks badges', async () => {
    const expected = [{ title, options: { ...others, data: { ...data, navigate } } }]
    const refused = () => Promise.reject(new Error('not allowed'))
    for (const [options, calls] of [
      [{}, ['badge 3']],
      [{ badge: refused }, ['badge 3']],
      [{ hasBadge: false }, []],
    ] as const) {
      const worker = startWorker({ code, ...options })
      await worker.push(JSON.stringify(message))
      assert.deepEqual(structuredClone(worker.shown), expected)
      assert.deepEqual(worker.calls, calls)
    }
  })

  test('focuses the window with the link after a click, or opens the link in a new window', async () => {
    const other = { url: 'https://app.example/' }
    for (const [windows, calls] of [
      [
        [other, { url: navigate }],
        ['close', `focus ${navigate}`],
      ],
      [[other], ['close', `open ${navigate}`]],
      [[], ['close', `open ${navigate}`]],
    ] as const) {
      const worker = startWorker({ code, windows: [...windows] })
      const close = () => worker.calls.push('close')
      await worker.send('notificationclick', { notification: { data: { ...data, navigate }, close } })
      assert.deepEqual(worker.calls, calls)
    }
  })
})

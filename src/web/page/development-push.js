import { button, h } from './dom.js'
import { describeError, language, texts } from './texts.js'

const MAX_PUSHES = 3
/** The item of localStorage that contains the endpoint with which this browser has subscribed. */
const ENDPOINT_KEY = 'courtside.local_push'

/**
 * Creates the part of the panel that shows the pushes of the local push service. A button subscribes the page to this
 * service, because the push service of a browser cannot be reached from every machine.
 * @param callAsUser sends a request with the token of the signed-in user
 * @param readToken returns this token, or null
 * @returns the element, and a function that shows the latest pushes
 */
export function createPushes({ callAsUser, readToken, key }) {
  const query = `key=${encodeURIComponent(key)}`
  const status = h('p', { class: 'muted', role: 'status' })
  const list = h('ul', { class: 'mails' })

  async function subscribe() {
    const [created, publicKey] = await Promise.all([
      readAnswer(fetch(`dev/push/subscriptions?${query}`, { method: 'POST' })),
      readAnswer(fetch('api/v1/push/key')),
    ])
    const previous = localStorage.getItem(ENDPOINT_KEY)
    if (previous) await callAsUser('api/v1/push/subscriptions', 'DELETE', { endpoint: previous })
    const { timeZone } = Intl.DateTimeFormat().resolvedOptions()
    const subscription = { ...created, public_key: publicKey.data.public_key, time_zone: timeZone }
    await readAnswer(callAsUser('api/v1/push/subscriptions', 'PUT', subscription))
    localStorage.setItem(ENDPOINT_KEY, created.endpoint)
  }

  const subscribeButton = button('secondary', texts.subscribePage, async () => {
    status.textContent = ''
    try {
      const isSignedIn = (await readToken()) !== null
      if (isSignedIn) await subscribe()
      status.textContent = isSignedIn ? texts.pageSubscribed : texts.gameLocked
    } catch (error) {
      status.textContent = describeError(error)
    }
  })

  async function show() {
    const answer = await fetch(`dev/push/messages.json?${query}`).catch(() => undefined)
    element.hidden = !answer?.ok
    if (!answer?.ok) return
    const text = await answer.text()
    // If the pushes have not changed, we keep their elements. New elements would make screen readers speak them again.
    if (list.content === text) return
    list.content = text
    const latest = JSON.parse(text).slice(0, MAX_PUSHES)
    list.replaceChildren(...(latest.length > 0 ? latest.map(createItem) : [h('li', { class: 'muted' }, texts.noPush)]))
  }

  const lead = h('p', { class: 'muted' }, texts.pushesLead)
  const element = h('div', { hidden: true }, h('h3', {}, texts.pushes), lead, h('p', {}, subscribeButton), status, list)
  return { element, show }
}

function createItem({ sent_at, urgency, message: { notification } }) {
  const { title, body, lang } = notification
  const time = new Date(sent_at).toLocaleTimeString(language)
  return h(
    'li',
    { class: 'push' },
    h('span', { lang }, h('strong', {}, title), body && h('span', {}, body)),
    h('span', { class: 'muted small' }, urgency === 'high' ? texts.urgentAt(time) : time),
  )
}

/** Returns the JSON of a successful answer. Otherwise throws an error with the message of the service. */
async function readAnswer(request) {
  const answer = await request
  const body = await answer.json()
  if (answer.ok) return body
  const message = Object.values(body.errors ?? {})[0]?.[0] ?? body.message
  throw Object.assign(new Error(message), { name: 'CourtsideError' })
}

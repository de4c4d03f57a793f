import { showMails } from './development-mails.js'
import { createPushes } from './development-push.js'
import { button, h } from './dom.js'
import { describeError, language, texts } from './texts.js'

const POLL_MS = 1500
const STORY_PAUSE_MS = 1200

const KEY = 'courtside.mailbox_key'

/**
 * Shows the latest mails, and buttons that report the events of a game. Shows nothing if the service has no development
 * mailbox, or if this browser does not have the key of the mailbox.
 * @param readToken returns the token of the signed-in user, or null
 */
export async function showDevelopment(panel, { courtside, readToken }) {
  // The service answers requests for the mailbox only at these host names.
  if (!['localhost', '127.0.0.1', '[::1]'].includes(location.hostname)) return
  const key = readKey()
  if (!key) return
  const mails = h('ul', { class: 'mails' })
  if (!(await showMails(mails, key))) return
  const callAsUser = createCall({ courtside, readToken })
  const pushes = createPushes({ callAsUser, readToken, key })
  await pushes.show()
  panel.setAttribute('aria-label', texts.development)
  panel.replaceChildren(
    h(
      'section',
      {},
      h('h2', {}, texts.development),
      h('p', { class: 'muted' }, texts.developmentLead),
      h('h3', {}, texts.mails),
      mails,
      h('h3', {}, texts.game),
      createGame({ callAsUser, readToken, key }),
      pushes.element,
    ),
  )
  panel.hidden = false
  setInterval(() => {
    if (document.hidden) return
    showMails(mails, key)
    pushes.show()
  }, POLL_MS)
}

/**
 * Returns the key of the mailbox. The start of the service prints an address with the key in its fragment. The page
 * keeps the key and removes it from the address, so a copied address does not contain it.
 */
function readKey() {
  const sent = new URLSearchParams(location.hash.slice(1)).get('mailbox')
  if (sent) history.replaceState(null, '', location.pathname + location.search)
  try {
    if (sent) localStorage.setItem(KEY, sent)
    return localStorage.getItem(KEY)
  } catch {
    return sent
  }
}

/** Creates a function that sends a request with the token of the signed-in user. */
function createCall({ courtside, readToken }) {
  return async function callAsUser(path, method, body) {
    const answer = await send(path, method, body)
    if (answer.status !== 401) return answer
    // The token has expired. The Courtside client renews the token during this call.
    await courtside.me().catch(() => {})
    return send(path, method, body)
  }

  async function send(path, method, body) {
    const headers = {
      authorization: `Bearer ${await readToken()}`,
      'content-type': 'application/json',
      'accept-language': language,
    }
    return fetch(path, { method, headers, body: JSON.stringify(body) })
  }
}

function createGame({ callAsUser, readToken, key }) {
  const status = h('p', { class: 'muted', role: 'status' })
  let [round, step, steps] = [createRound(), 0, 1]
  let playing = false

  async function playNext() {
    if (!(await readToken())) {
      status.textContent = texts.gameLocked
      return false
    }
    const answer = await callAsUser(`dev/play?key=${encodeURIComponent(key)}`, 'POST', { round, step })
    if (!answer.ok) {
      status.textContent = (await answer.json()).message
      ;[round, step] = [createRound(), 0]
      return false
    }
    const { data } = await answer.json()
    steps = data.steps
    status.textContent = texts.played(data.type, step + 1, steps)
    step += 1
    const hasNext = step < steps
    if (!hasNext) [round, step] = [createRound(), 0]
    return hasNext
  }

  /** Creates a click handler that ignores clicks until the action of an earlier click has ended. */
  const whileIdle = action => async () => {
    if (playing) return
    playing = true
    await action().catch(error => {
      status.textContent = describeError(error)
    })
    playing = false
  }
  const next = button('secondary', texts.nextEvent, whileIdle(playNext))
  const whole = button(
    'secondary',
    texts.wholeStory,
    whileIdle(async () => {
      while (await playNext()) await new Promise(resolve => setTimeout(resolve, STORY_PAUSE_MS))
    }),
  )
  return h('div', {}, h('p', { class: 'muted' }, texts.gameLead), h('p', { class: 'row' }, next, whole), status)
}

/** Returns a number for a new game. The number makes the ids in this game differ from the ids in earlier games. */
function createRound() {
  return Math.floor(Date.now() / 1000) % 500_000
}

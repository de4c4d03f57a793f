import { button, h } from './dom.js'
import { texts } from './texts.js'

const EVERY_MS = 1500
const PAUSE_MS = 1200
const KEPT = 3

/**
 * The panel of the development service: its latest mails, and a game to be played. Elsewhere there is no panel.
 * @param token gives the token of whoever is signed in, or null
 */
export async function showDevelopment(place, { courtside, token }) {
  // The mailbox answers nobody else, so that others need not ask.
  if (!['localhost', '127.0.0.1', '[::1]'].includes(location.hostname)) return
  const mails = h('ul', { class: 'mails' })
  if (!(await showMails(mails))) return
  place.setAttribute('aria-label', texts.development)
  place.replaceChildren(
    h(
      'section',
      {},
      h('h2', {}, texts.development),
      h('p', { class: 'muted' }, texts.developmentLead),
      h('h3', {}, texts.mails),
      mails,
      h('h3', {}, texts.game),
      game({ courtside, token }),
    ),
  )
  place.hidden = false
  setInterval(() => document.hidden || showMails(mails), EVERY_MS)
}

/** @returns whether there is a mailbox */
async function showMails(list) {
  const answer = await fetch('/dev/mailbox.json').catch(() => undefined)
  if (!answer?.ok) return false
  const text = await answer.text()
  // What is there stays while nothing is new, so that nobody loses a focus or a click.
  if (list.shown === text) return true
  list.shown = text
  const latest = JSON.parse(text).slice(0, KEPT)
  list.replaceChildren(...(latest.length > 0 ? latest.map(mailItem) : [h('li', { class: 'muted' }, texts.noMail)]))
  return true
}

function mailItem({ to, text }) {
  const code = /^\d{4}$/m.exec(text)?.[0]
  const use = code && button('secondary', code, () => fill(code))
  use?.setAttribute('aria-label', texts.useCode(code))
  return h('li', {}, h('span', { class: 'to' }, to), use)
}

/** Types the code where one is asked for. */
function fill(code) {
  const input = document.querySelector('input.code')
  if (!input) return
  input.value = code
  input.focus()
  input.dispatchEvent(new Event('input', { bubbles: true }))
}

function game({ courtside, token }) {
  const said = h('p', { class: 'muted', role: 'status' })
  let [round, step, steps] = [newRound(), 0, 1]
  let playing = false

  async function playNext() {
    if (!(await token())) {
      said.textContent = texts.gameLocked
      return false
    }
    const answer = await tell({ round, step })
    if (!answer.ok) {
      said.textContent = (await answer.json()).message
      ;[round, step] = [newRound(), 0]
      return false
    }
    const { data } = await answer.json()
    steps = data.steps
    said.textContent = texts.played(data.type, step + 1, steps)
    step += 1
    const goesOn = step < steps
    if (!goesOn) [round, step] = [newRound(), 0]
    return goesOn
  }

  async function tell(body) {
    const answer = await post(body)
    if (answer.status !== 401) return answer
    // Renews the token on its way.
    await courtside.me().catch(() => {})
    return post(body)
  }

  async function post(body) {
    const headers = { authorization: `Bearer ${await token()}`, 'content-type': 'application/json' }
    return fetch('/dev/play', { method: 'POST', headers, body: JSON.stringify(body) })
  }

  const alone = work => async () => {
    if (playing) return
    playing = true
    await work().catch(error => {
      said.textContent = error.message
    })
    playing = false
  }
  const next = button('secondary', texts.nextFact, alone(playNext))
  const whole = button(
    'secondary',
    texts.wholeStory,
    alone(async () => {
      while (await playNext()) await new Promise(resolve => setTimeout(resolve, PAUSE_MS))
    }),
  )
  return h('div', {}, h('p', { class: 'muted' }, texts.gameLead), h('p', { class: 'row' }, next, whole), said)
}

/** Tells this telling of the story from those before. */
function newRound() {
  return Math.floor(Date.now() / 1000) % 500_000
}

import { button, h } from './dom.js'
import { texts } from './texts.js'

const MAX_MAILS = 3

/** Shows the latest mails. @returns whether the service has a development mailbox with this key */
export async function showMails(list, key) {
  const answer = await fetch(`dev/mailbox.json?key=${encodeURIComponent(key)}`).catch(() => undefined)
  if (!answer?.ok) return false
  const text = await answer.text()
  // If the mails have not changed, we keep their elements. New elements would lose the focus and a click in progress.
  if (list.content === text) return true
  list.content = text
  const latest = JSON.parse(text).slice(0, MAX_MAILS)
  list.replaceChildren(
    ...(latest.length > 0 ? latest.map(createMailItem) : [h('li', { class: 'muted' }, texts.noMail)]),
  )
  return true
}

function createMailItem({ to, subject, text }) {
  // A code may have several parts, in the order in which the user must enter them.
  const code = /^\d{4}(?:[^\d\n]+\d{4}){0,2}$/m.exec(text)?.[0]
  if (!code) return h('li', { class: 'letter' }, createLetter(to, subject, text))
  const useButton = button('secondary', code, () => enterCode(code))
  useButton.setAttribute('aria-label', texts.useCode(code))
  return h('li', {}, h('span', { class: 'to' }, to), useButton)
}

/** Creates an element with the subject of a mail, which opens to show the text with its links. */
function createLetter(to, subject, text) {
  const parts = text.split(/(https?:\/\/\S+)/)
  const content = parts.map((part, index) => (index % 2 === 1 ? h('a', { href: part, target: '_blank' }, part) : part))
  return h(
    'details',
    {},
    h('summary', {}, subject),
    h('p', { class: 'muted to' }, to),
    h('div', { class: 'text' }, content),
  )
}

/** Enters the code into the code field, if the current screen has a code field. */
function enterCode(code) {
  const input = document.querySelector('input.code')
  if (!input) return
  input.value = code
  input.focus()
  input.dispatchEvent(new Event('input', { bubbles: true }))
}

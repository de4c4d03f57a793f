import '/client/inbox.js'
import { Courtside, localStorageStorage } from '/client/index.js'
import { codeScreen } from './code.js'
import { showDevelopment } from './development.js'
import { button, h } from './dom.js'
import { homeScreen } from './home.js'
import { levelScreen } from './level.js'
import { signInScreen } from './sign-in.js'
import { language, switchLanguage, texts } from './texts.js'

const SCREENS = { 'sign-in': signInScreen, code: codeScreen, level: levelScreen, home: homeScreen }
const PENDING = 'courtside.pending'

const [place, tools] = [document.querySelector('#screen'), document.querySelector('#tools')]
const storage = localStorageStorage()
const courtside = new Courtside({ storage, language })
let shown
let leave = []

/** Shows a screen. One that was asked for later wins over one that is still being made. */
async function go(name, details = {}) {
  for (const left of leave) left()
  leave = []
  const turn = {}
  shown = { name, turn }
  rememberCode(name, details)
  showBell(name)
  try {
    const screen = await SCREENS[name]({ ...details, courtside, go, signedIn, onLeave: left => leave.push(left) })
    if (shown.turn === turn) show(screen, details.focus)
  } catch (error) {
    if (shown.turn === turn) showProblem(error, () => go(name, details))
  }
}

function show(screen, focus) {
  const isFirst = place.querySelector('h1') === null
  place.replaceChildren(...screen.filter(Boolean))
  const heading = place.querySelector('h1')
  document.title = `${heading.textContent} · Courtside`
  const code = place.querySelector('input.code')
  const target = focus ? place.querySelector(focus) : code
  if (target) return target.focus()
  // A change of screen is told to who doesn't see it; at the start the browser does so itself.
  heading.tabIndex = -1
  if (!isFirst) heading.focus()
}

function showProblem(error, again) {
  place.replaceChildren(
    h('h1', {}, 'Courtside'),
    h('p', { class: 'error', role: 'alert' }, error.message),
    button('primary', texts.retry, again),
  )
}

/** The bell is there for as long as somebody is signed in. */
function showBell(name) {
  const isIn = name === 'home' || name === 'level'
  if (!isIn) return tools.replaceChildren()
  if (tools.childElementCount > 0) return
  const inbox = document.createElement('courtside-inbox')
  inbox.lang = language
  inbox.client = courtside
  tools.append(inbox)
}

/** So that a reload, as phones do when one looks for the mail, leads back to where the code is asked for. */
function rememberCode(name, { email }) {
  try {
    if (name === 'code') sessionStorage.setItem(PENDING, email)
    else sessionStorage.removeItem(PENDING)
  } catch {}
}

function pendingEmail() {
  try {
    return sessionStorage.getItem(PENDING)
  } catch {
    return null
  }
}

async function signedIn() {
  const user = await courtside.me()
  go(user.game_level ? 'home' : 'level', { user })
}

async function start() {
  if (!(await courtside.signedIn())) {
    const email = pendingEmail()
    return email ? go('code', { email, wait: 0 }) : go('sign-in')
  }
  try {
    await signedIn()
  } catch (error) {
    // When the session was refused, `onSignedOut` has led away.
    if (error.status !== 401) showProblem(error, start)
  }
}

document.documentElement.lang = language
document
  .querySelector('#bottom')
  .append(
    h('a', { href: '/docs' }, texts.reference),
    h(
      'button',
      { type: 'button', class: 'link', lang: language === 'en' ? 'fr' : 'en', onclick: switchLanguage },
      texts.language,
    ),
  )
courtside.onSignedOut(async () => {
  // Somebody else may have signed in, in another tab.
  if (await courtside.signedIn()) return start()
  // Who has deleted the account is told so.
  if (shown?.name !== 'sign-in') go('sign-in', { notice: texts.signedOut })
})
storage.onChange?.(async () => {
  // Signed in in another tab.
  if ((shown?.name === 'sign-in' || shown?.name === 'code') && (await courtside.signedIn())) start()
})
await start()
await showDevelopment(document.querySelector('#development'), { courtside, token: () => storage.get('token') })

import '../client/inbox.js'
import { Courtside, localStorageStorage } from '../client/index.js'
import { codeScreen } from './code.js'
import { showDevelopment } from './development.js'
import { button, h } from './dom.js'
import { homeScreen } from './home.js'
import { appName } from './installation.js'
import { levelScreen } from './level.js'
import { signInScreen } from './sign-in.js'
import { describeError, language, switchLanguage, texts } from './texts.js'

const SCREENS = { 'sign-in': signInScreen, code: codeScreen, level: levelScreen, home: homeScreen }
const PENDING_KEY = 'courtside.pending_request'

const [main, tools] = [document.querySelector('#screen'), document.querySelector('#tools')]
const storage = localStorageStorage()
// A proxy may serve the page below a path, such as /courtside/.
const url = new URL('.', location.href).href.replace(/\/$/, '')
// The policy of this page demands Trusted Types. Only the address of the service worker becomes the address of a script.
const serviceWorker = new URL('service-worker.js', location.href).href
window.trustedTypes?.createPolicy('default', {
  createScriptURL: text => (new URL(text, location.href).href === serviceWorker ? text : null),
})
const courtside = new Courtside({ url, storage, language })
let current
/** The functions to call before another screen is shown. */
let leaveListeners = []

/** Shows a screen. If `go` is called again before the screen is ready, only the screen of the later call is shown. */
async function go(name, details = {}) {
  for (const listener of leaveListeners) listener()
  leaveListeners = []
  const request = { name }
  current = request
  rememberCode(name, details)
  showBell(name)
  try {
    const onLeave = listener => leaveListeners.push(listener)
    const screen = await SCREENS[name]({ ...details, courtside, go, showUser, onLeave })
    if (current === request) show(screen, details.focus)
  } catch (error) {
    if (current === request) showProblem(error, () => go(name, details))
  }
}

function show(screen, focus) {
  const isFirst = main.querySelector('h1') === null
  main.replaceChildren(...screen.filter(Boolean))
  const heading = main.querySelector('h1')
  document.title = `${heading.textContent} · ${appName}`
  const code = main.querySelector('input.code')
  const target = focus ? main.querySelector(focus) : code
  if (target) return target.focus()
  // When the heading gets the focus, a screen reader speaks the heading. The first screen does not need this, because
  // the browser announces a newly loaded page itself.
  heading.tabIndex = -1
  if (!isFirst) heading.focus()
}

function showProblem(error, retry) {
  main.replaceChildren(
    h('h1', {}, appName),
    h('p', { class: 'error', role: 'alert' }, describeError(error)),
    button('primary', texts.retry, retry),
  )
}

/** Shows the bell on the screens of a signed-in user, and removes it from all other screens. */
function showBell(name) {
  const isSignedIn = name === 'home' || name === 'level'
  if (!isSignedIn) {
    showBadge(0)
    return tools.replaceChildren()
  }
  if (tools.childElementCount > 0) return
  courtside.notifications.watch({ onUnreadCount: showBadge })
  const inbox = h('courtside-inbox', { lang: language, settings: true, 'service-worker': serviceWorker })
  inbox.addEventListener('sign-in-request', () => go('sign-in'))
  inbox.client = courtside
  tools.append(inbox)
}

/** Shows the number of unread notifications on the icon of the installed page. */
function showBadge(count) {
  navigator.setAppBadge?.(count).catch(() => {})
}

/** Returns the text that explains why the pushes to this device carry no text, or undefined if there are none. */
async function explainPushes() {
  const state = globalThis.Notification?.permission === 'granted' && (await courtside.push.state().catch(() => 'off'))
  return state === 'on' ? texts.signedOutPush : undefined
}

/**
 * Stores the request for the code while the code screen is shown. A phone may reload the page while the user reads the
 * mail, and the reloaded page needs the request to repeat it.
 */
function rememberCode(name, { request }) {
  try {
    if (name === 'code') sessionStorage.setItem(PENDING_KEY, JSON.stringify(request))
    else sessionStorage.removeItem(PENDING_KEY)
  } catch {}
}

function readPendingRequest() {
  try {
    return JSON.parse(sessionStorage.getItem(PENDING_KEY))
  } catch {
    return null
  }
}

/** Shows the first screen of a signed-in user. */
async function showUser() {
  const user = await courtside.me()
  go(user.game_level ? 'home' : 'level', { user })
}

async function start() {
  if (!(await courtside.signedIn())) {
    const request = readPendingRequest()
    return request ? go('code', { request, wait: 0 }) : go('sign-in', { notice: await explainPushes() })
  }
  try {
    await showUser()
  } catch (error) {
    // After a 401 the `onSignedOut` listener shows another screen.
    if (error.status !== 401) showProblem(error, start)
  }
}

document.documentElement.lang = language
document
  .querySelector('#bottom')
  .append(
    h('a', { href: 'docs' }, texts.reference),
    h(
      'button',
      { type: 'button', class: 'link', lang: language === 'en' ? 'fr' : 'en', onclick: switchLanguage },
      texts.language,
    ),
  )
courtside.onSignedOut(async () => {
  // The Courtside client also calls this listener when a different user signs in in another browser tab. In this case a
  // user is signed in, and `start` shows the first screen of this user.
  if (await courtside.signedIn()) return start()
  // After the deletion of an account, the sign-in screen already shows a notice about the deletion. This notice
  // must stay.
  const notice = [texts.signedOut, await explainPushes()].filter(Boolean).join(' ')
  if (current?.name !== 'sign-in') go('sign-in', { notice })
})
storage.onChange?.(async () => {
  // The stored token has changed, possibly because the user has signed in in another tab.
  if ((current?.name === 'sign-in' || current?.name === 'code') && (await courtside.signedIn())) start()
})
await start()
await showDevelopment(document.querySelector('#development'), { courtside, readToken: () => storage.get('token') })

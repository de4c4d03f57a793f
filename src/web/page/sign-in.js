import { DEFAULT_WAIT_SECONDS } from './countdown.js'
import { button, h } from './dom.js'
import { field, form } from './form.js'
import { termsUrl } from './installation.js'
import { texts } from './texts.js'

/**
 * Creates the screen that asks for the e-mail address. In sign-up mode, the screen also asks for the name and the
 * consent.
 */
export function signInScreen({ courtside, go, notice, mode = 'in', email: known = '' }) {
  const email = field('email', texts.email, { type: 'email', autocomplete: 'email', inputmode: 'email' })
  const firstName = field('first_name', texts.firstName, { autocomplete: 'given-name', maxlength: '100' })
  const lastName = field('last_name', texts.lastName, { autocomplete: 'family-name', maxlength: '100' })
  const terms = field('accept_cgu', texts.terms, { type: 'checkbox' })
  // Outside the label, so a click on the link does not tick the checkbox.
  if (termsUrl) terms.element.firstChild.after(h('a', { href: termsUrl, target: '_blank' }, texts.readTerms))
  email.input.value = known
  const isSignUp = mode === 'up'
  const fields = isSignUp ? [firstName, lastName, email, terms] : [email]

  function readCredentials() {
    const address = email.input.value.trim()
    if (!isSignUp) return { email: address }
    return {
      email: address,
      first_name: firstName.input.value,
      last_name: lastName.input.value,
      accept_cgu: terms.input.checked,
    }
  }

  async function requestCode() {
    const body = readCredentials()
    try {
      const { retryAfter } = await courtside.requestOtp(body)
      go('code', { request: body, wait: retryAfter ?? DEFAULT_WAIT_SECONDS })
    } catch (error) {
      // The error code `wait` means that the service has just sent a code, so the next screen can ask for the code.
      if (error.code !== 'wait') throw error
      go('code', { request: body, wait: error.retryAfter ?? DEFAULT_WAIT_SECONDS, problem: error.message })
    }
  }

  const requestForm = form({
    fields,
    submit: texts.sendCode,
    missing: { accept_cgu: texts.termsRequired },
    between: isSignUp
      ? [h('div', { class: 'pair' }, firstName.element, lastName.element), email.element, terms.element]
      : [email.element],
    work: requestCode,
  })

  const createTab = (to, text) => {
    const tab = button('', text, () => {
      if (to !== mode) go('sign-in', { mode: to, email: email.input.value, focus: `[data-mode=${to}]` })
    })
    tab.setAttribute('aria-pressed', String(to === mode))
    tab.dataset.mode = to
    return tab
  }

  return [
    h('h1', {}, texts.welcome),
    h('p', { class: 'lead' }, texts.welcomeLead),
    notice && h('p', { class: 'notice', role: 'status' }, notice),
    h(
      'div',
      { class: 'card' },
      h(
        'div',
        { class: 'tabs', role: 'group', 'aria-label': texts.how },
        createTab('in', texts.signIn),
        createTab('up', texts.signUp),
      ),
      requestForm.element,
    ),
  ]
}

import { button, h } from './dom.js'
import { field, form } from './form.js'
import { texts } from './texts.js'

/** Asks for the e-mail, and for who it is when that is a sign-up. */
export function signInScreen({ courtside, go, notice, mode = 'in', email: known = '' }) {
  const email = field('email', texts.email, { type: 'email', autocomplete: 'email', inputmode: 'email' })
  const firstName = field('first_name', texts.firstName, { autocomplete: 'given-name', maxlength: '100' })
  const lastName = field('last_name', texts.lastName, { autocomplete: 'family-name', maxlength: '100' })
  const terms = field('accept_cgu', texts.terms, { type: 'checkbox' })
  email.input.value = known
  const isSignUp = mode === 'up'
  const fields = isSignUp ? [firstName, lastName, email, terms] : [email]

  function credentials() {
    const address = email.input.value.trim()
    if (!isSignUp) return { email: address }
    return {
      email: address,
      first_name: firstName.input.value,
      last_name: lastName.input.value,
      accept_cgu: terms.input.checked,
    }
  }

  async function ask() {
    const body = credentials()
    try {
      await courtside.requestOtp(body)
      go('code', { email: body.email, wait: 60 })
    } catch (error) {
      // A code was sent a moment ago, to be typed on the next screen.
      if (error.code !== 'wait') throw error
      go('code', { email: body.email, wait: error.retryAfter ?? 60, problem: error.message })
    }
  }

  const asked = form({
    fields,
    submit: texts.sendCode,
    missing: { accept_cgu: texts.termsRequired },
    between: isSignUp
      ? [h('div', { class: 'pair' }, firstName.element, lastName.element), email.element, terms.element]
      : [email.element],
    work: ask,
  })

  const tab = (to, text) => {
    const choice = button('', text, () => {
      if (to !== mode) go('sign-in', { mode: to, email: email.input.value, focus: `[data-mode=${to}]` })
    })
    choice.setAttribute('aria-pressed', String(to === mode))
    choice.dataset.mode = to
    return choice
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
        tab('in', texts.signIn),
        tab('up', texts.signUp),
      ),
      asked.element,
    ),
  ]
}

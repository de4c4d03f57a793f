import { clockTime, countDown } from './countdown.js'
import { button, h } from './dom.js'
import { codeField, form } from './form.js'
import { texts } from './texts.js'

/** Takes the code, and sends another one when its time has come. */
export function codeScreen({ courtside, go, signedIn, onLeave, email, wait = 60, problem = '' }) {
  const code = codeField(() => entered.run())
  const entered = form({
    fields: [code],
    submit: texts.verify,
    missing: { code: texts.codeShape },
    between: [code.element],
    async work() {
      try {
        await courtside.verifyOtp({ email, code: code.input.value })
      } catch (error) {
        code.input.select()
        throw error
      }
      await signedIn()
    },
  })

  const said = h('p', { class: 'muted small', role: 'status' }, problem)
  const resend = button('link', texts.resend, async () => {
    if (resend.getAttribute('aria-disabled') === 'true') return
    resend.setAttribute('aria-disabled', 'true')
    said.textContent = ''
    try {
      // The e-mail alone: of a sign-up that waits for its code the service knows the rest.
      await courtside.requestOtp({ email })
      said.textContent = texts.resent
      code.complain('')
      code.input.value = ''
      code.input.focus()
      waitFor(60)
    } catch (error) {
      said.textContent = error.message
      waitFor(error.retryAfter ?? 0)
    }
  })
  let stop = () => {}
  function waitFor(seconds) {
    stop()
    stop = countDown(seconds, left => {
      resend.setAttribute('aria-disabled', String(left > 0))
      resend.textContent = left > 0 ? texts.resendIn(clockTime(left)) : texts.resend
    })
  }
  waitFor(wait)
  onLeave(() => stop())

  return [
    h('h1', {}, texts.codeTitle),
    h('p', { class: 'lead' }, texts.codeLead(email)),
    h(
      'div',
      { class: 'card' },
      entered.element,
      h(
        'div',
        { class: 'row' },
        resend,
        button('link', texts.otherEmail, () => go('sign-in', { email })),
      ),
      said,
    ),
  ]
}

import { countDown, DEFAULT_WAIT_SECONDS, formatSeconds } from './countdown.js'
import { button, h } from './dom.js'
import { codeField, form } from './form.js'
import { describeError, texts } from './texts.js'

/**
 * Creates the screen that asks for the code.
 * @param request the body of the request for the code
 * @param wait the seconds until the user can request another code
 */
export function codeScreen({ courtside, go, showUser, onLeave, request, wait, problem = '' }) {
  const { email } = request
  const code = codeField(() => codeForm.run())
  const codeForm = form({
    fields: [code],
    submit: texts.verify,
    missing: { code: texts.codeShape },
    between: [code.element],
    async work() {
      const entered = await courtside.verifyOtp({ email, code: code.input.value }).catch(error => {
        code.input.select()
        throw error
      })
      if (!entered.next_part) return showUser()
      status.textContent = entered.message
      code.clear()
    },
  })

  const status = h('p', { class: 'muted small', role: 'status' }, problem)
  const resend = button('link', texts.resend, async () => {
    if (resend.getAttribute('aria-disabled') === 'true') return
    resend.setAttribute('aria-disabled', 'true')
    status.textContent = ''
    try {
      // During a sign-up the request contains the names and the consent again. The service resumes a sign-up without
      // them only for the network that began it.
      const { retryAfter } = await courtside.requestOtp(request)
      status.textContent = texts.resent
      code.clear()
      startWait(retryAfter ?? DEFAULT_WAIT_SECONDS)
    } catch (error) {
      status.textContent = describeError(error)
      startWait(error.retryAfter ?? 0)
    }
  })
  let stop = () => {}
  function startWait(seconds) {
    stop()
    stop = countDown(seconds, left => {
      resend.setAttribute('aria-disabled', String(left > 0))
      resend.textContent = left > 0 ? texts.resendIn(formatSeconds(left)) : texts.resend
    })
  }
  startWait(wait)
  onLeave(() => stop())

  return [
    h('h1', {}, texts.codeTitle),
    h('p', { class: 'lead' }, texts.codeLead(email)),
    h(
      'div',
      { class: 'card' },
      codeForm.element,
      h(
        'div',
        { class: 'row' },
        resend,
        button('link', texts.otherEmail, () => go('sign-in', { email })),
      ),
      status,
    ),
  ]
}

import { button, h } from './dom.js'
import { codeField, form } from './form.js'
import { texts } from './texts.js'

/** Deletes the account in two steps: a code is asked for, then it is given. */
export function deletion({ courtside, go, user }) {
  const place = h('div', {})

  function offer() {
    place.replaceChildren(button('link danger', texts.deleteAccount, explain))
  }

  function explain() {
    const ask = form({
      fields: [],
      submit: texts.sendCode,
      async work() {
        // Where one was sent a moment ago it will do.
        await courtside.requestOtp({ email: user.email }).catch(error => {
          if (error.code !== 'wait') throw error
        })
        confirm()
      },
    })
    show(ask.element)
    ask.element.querySelector('button').focus()
  }

  function confirm() {
    // What can't be undone isn't sent by itself.
    const code = codeField(() => {})
    const last = form({
      fields: [code],
      submit: texts.deleteNow,
      danger: true,
      missing: { code: texts.codeShape },
      between: [code.element],
      async work() {
        await courtside.deleteAccount(code.input.value)
        go('sign-in', { notice: texts.deleted })
      },
    })
    show(last.element)
    code.input.focus()
  }

  function show(step) {
    const cancel = button('link', texts.cancel, () => {
      offer()
      place.querySelector('button').focus()
    })
    place.replaceChildren(h('p', { class: 'muted' }, texts.deleteLead), step, cancel)
  }

  offer()
  return place
}

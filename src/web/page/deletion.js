import { button, h } from './dom.js'
import { codeField, form } from './form.js'
import { texts } from './texts.js'

/** Creates the controls to delete the account. The user first requests a code, then enters this code. */
export function createDeletion({ courtside, go, user }) {
  const container = h('div', {})

  function offer() {
    container.replaceChildren(button('link danger', texts.deleteAccount, explain))
  }

  function explain() {
    const requestForm = form({
      fields: [],
      submit: texts.sendCode,
      async work() {
        // The error code `wait` means that the service has just sent a code. The user can enter this code.
        await courtside.requestOtp({ email: user.email }).catch(error => {
          if (error.code !== 'wait') throw error
        })
        confirm()
      },
    })
    show(requestForm.element)
    requestForm.element.querySelector('button').focus()
  }

  function confirm() {
    // This form does not submit the code after the fourth digit. The user must press the button, because a deletion
    // cannot be undone.
    const code = codeField(() => {})
    const status = h('p', { class: 'muted small', role: 'status' })
    const confirmForm = form({
      fields: [code],
      submit: texts.deleteNow,
      danger: true,
      missing: { code: texts.codeShape },
      between: [code.element, status],
      async work() {
        const entered = await courtside.deleteAccount(code.input.value)
        if (!entered.next_part) return go('sign-in', { notice: texts.deleted })
        status.textContent = entered.message
        code.clear()
      },
    })
    show(confirmForm.element)
    code.input.focus()
  }

  function show(step) {
    const cancel = button('link', texts.cancel, () => {
      offer()
      container.querySelector('button').focus()
    })
    container.replaceChildren(h('p', { class: 'muted' }, texts.deleteLead), step, cancel)
  }

  offer()
  return container
}

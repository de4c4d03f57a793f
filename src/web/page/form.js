import { h } from './dom.js'
import { texts } from './texts.js'

/** A labelled input with a place for what is wrong with it. `name` is the service's own name of the field. */
export function field(name, label, attributes = {}) {
  const error = h('p', { class: 'error', id: `${name}-error` })
  const input = h('input', { id: name, name, required: true, 'aria-describedby': error.id, ...attributes })
  const isCheck = attributes.type === 'checkbox'
  const element = isCheck
    ? h('div', {}, h('label', { class: 'check' }, input, label), error)
    : h('div', {}, h('label', { for: name }, label), input, error)
  return {
    name,
    element,
    input,
    isEmpty: () => (isCheck ? !input.checked : input.value.trim() === ''),
    complain(text) {
      error.textContent = text
      input.setAttribute('aria-invalid', String(text !== ''))
    },
  }
}

/**
 * A form that says what is wrong where it is wrong. `work` is done once at a time; of what it throws the fields' texts
 * are shown at them, and the rest below.
 * @param missing the text for an empty field, by its name
 */
export function form({ fields, submit, danger = false, missing = {}, between = [], work }) {
  const problem = h('p', { class: 'error', role: 'alert' })
  const button = h('button', { type: 'submit', class: danger ? 'primary danger' : 'primary' }, submit)
  // Without the browser's own bubbles, which no screen reader reads twice and no style reaches.
  const element = h('form', { novalidate: true }, between, problem, button)

  async function run() {
    if (button.getAttribute('aria-disabled') === 'true') return
    problem.textContent = ''
    for (const one of fields) one.complain(one.isEmpty() ? (missing[one.name] ?? texts.required) : '')
    if (focusInvalid()) return
    button.setAttribute('aria-disabled', 'true')
    try {
      await work()
    } catch (error) {
      complain(error)
    } finally {
      button.setAttribute('aria-disabled', 'false')
    }
  }

  function complain(error) {
    const known = fields.filter(({ name }) => error.errors?.[name])
    for (const one of known) one.complain(error.errors[one.name].join(' '))
    if (known.length === 0) problem.textContent = error.message
    focusInvalid()
  }

  function focusInvalid() {
    const invalid = fields.find(({ input }) => input.getAttribute('aria-invalid') === 'true')
    invalid?.input.focus()
    return invalid !== undefined
  }

  element.addEventListener('submit', event => {
    event.preventDefault()
    run()
  })
  return { element, run, complain }
}

/** The one input of a code: typed, pasted or filled in, it is sent as soon as it has its four digits. */
export function codeField(onComplete) {
  const code = field('code', texts.code, {
    class: 'code',
    inputmode: 'numeric',
    autocomplete: 'one-time-code',
    // No maxlength: a pasted "12 34" would lose its last digit before it is tidied.
    pattern: '[0-9]{4}',
    autocapitalize: 'off',
    spellcheck: 'false',
    enterkeyhint: 'done',
  })
  let sent = ''
  code.input.addEventListener('input', () => {
    const digits = code.input.value.replace(/\D/g, '').slice(0, 4)
    if (digits !== code.input.value) code.input.value = digits
    if (digits.length === 4 && digits !== sent) onComplete()
    sent = digits
  })
  return code
}

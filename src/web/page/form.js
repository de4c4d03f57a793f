import { h } from './dom.js'
import { describeError, texts } from './texts.js'

/** Creates a labelled input and an element for its error message. @param name the name of the field in the API */
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
    isMissing: () => input.required && (isCheck ? !input.checked : input.value.trim() === ''),
    setError(text) {
      error.textContent = text
      input.setAttribute('aria-invalid', String(text !== ''))
    },
  }
}

/**
 * Creates a form that shows each error message at its field, and any other error message below the fields. While `work`
 * is running, the form ignores the submit button.
 * @param missing the error messages for empty fields, by field name
 */
export function form({ fields, submit, danger = false, missing = {}, between = [], work }) {
  const problem = h('p', { class: 'error', role: 'alert' })
  const button = h('button', { type: 'submit', class: danger ? 'primary danger' : 'primary' }, submit)
  // `novalidate` turns off the browser's error messages. We cannot style them, and screen readers speak them only once.
  const element = h('form', { novalidate: true }, between, problem, button)

  async function run() {
    if (button.getAttribute('aria-disabled') === 'true') return
    problem.textContent = ''
    for (const one of fields) one.setError(one.isMissing() ? (missing[one.name] ?? texts.required) : '')
    if (focusInvalid()) return
    button.setAttribute('aria-disabled', 'true')
    try {
      await work()
    } catch (error) {
      showErrors(error)
    } finally {
      button.setAttribute('aria-disabled', 'false')
    }
  }

  function showErrors(error) {
    const known = fields.filter(({ name }) => error.errors?.[name])
    for (const one of known) one.setError(error.errors[one.name].join(' '))
    if (known.length === 0) problem.textContent = describeError(error)
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
  return { element, run }
}

/**
 * Creates the input for a code. A code has one to three parts of four digits. The user types one part, or pastes all
 * parts in one text.
 * @param onComplete the function that is called as soon as the input contains complete parts
 */
export function codeField(onComplete) {
  const code = field('code', texts.code, {
    class: 'code',
    inputmode: 'numeric',
    autocomplete: 'one-time-code',
    // There is no maxlength, because a maxlength of 4 would cut off the last digit of a pasted "12 34".
    pattern: '[0-9]{4,12}',
    autocapitalize: 'off',
    spellcheck: 'false',
    enterkeyhint: 'done',
  })
  let completed = ''
  function read({ data }) {
    // NFKC turns the full-width digits of East Asian keyboards into ASCII digits.
    const pasted = code.input.value.normalize('NFKC').replace(/\D/g, '')
    // A single typed digit belongs to one part. A pasted or suggested text may contain all parts.
    const digits = pasted.slice(0, data?.length === 1 ? 4 : 12)
    if (digits !== code.input.value) code.input.value = digits
    const isComplete = digits.length > 0 && digits.length % 4 === 0
    if (isComplete && digits !== completed) onComplete()
    completed = digits
  }
  // A change of the value while an input method composes a digit would end the composition.
  code.input.addEventListener('input', event => event.isComposing || read(event))
  code.input.addEventListener('compositionend', read)
  const clear = () => {
    code.setError('')
    code.input.value = ''
    completed = ''
    code.input.focus()
  }
  return { ...code, clear }
}

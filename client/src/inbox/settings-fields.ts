import { h } from './dom.ts'

/** Sends a new value. If it rejects, the message of its error is shown at the field. */
export type Send<T> = (value: T) => Promise<void>

/** The number of ids so far, which makes the ids of the elements unique. */
let ids = 0

/** Returns a new id. */
export function createId(): string {
  ids += 1
  return `setting-${ids}`
}

/** Creates an element for the errors of some inputs, and a function that shows an error of one of them. */
export function createError(...inputs: HTMLInputElement[]) {
  const element = h('p', { class: 'error', id: createId(), role: 'alert' })
  for (const input of inputs) input.setAttribute('aria-describedby', element.id)
  return {
    element,
    setError(text: string, faulty = inputs) {
      element.textContent = text
      for (const input of inputs) input.setAttribute('aria-invalid', String(text !== '' && faulty.includes(input)))
    },
  }
}

type ErrorView = ReturnType<typeof createError>

export function createToggle(): HTMLInputElement {
  return h('input', { type: 'checkbox', role: 'switch' })
}

/**
 * Sends the state of a switch after each click. If that fails, shows the error. The caller of this function shows the
 * state that then holds.
 */
export function sendToggle(toggle: HTMLInputElement, send: Send<boolean>, { setError }: ErrorView): void {
  toggle.addEventListener('change', () => {
    setError('')
    send(toggle.checked).catch((error: Error) => setError(error.message, [toggle]))
  })
}

/** Creates a switch with a label and a hint. */
export function createSwitch(label: string, hint: string, send: Send<boolean>) {
  const input = createToggle()
  const error = createError(input)
  const note = h('p', { class: 'hint', id: createId() }, hint)
  input.setAttribute('aria-describedby', `${error.element.id} ${note.id}`)
  sendToggle(input, send, error)
  return {
    element: h('div', {}, h('label', { class: 'row' }, h('span', {}, label), input), error.element, note),
    input,
    show(value: boolean) {
      input.checked = value
    },
    setHint(text: string) {
      note.textContent = text
    },
  }
}

/**
 * Creates a labelled text field. It sends the text when the user leaves the field or presses Enter, because browsers
 * report a change of a time after each digit. A refused text stays, so that the user can correct it.
 */
export function createTextField(label: string, attributes: Record<string, string>, send: Send<string>) {
  const input = h('input', { ...attributes, id: createId() })
  const error = createError(input)
  let shown = ''
  const isRefused = () => error.element.textContent !== ''
  const submit = () => {
    if (input.value === shown) return
    shown = input.value
    error.setError('')
    send(input.value).catch((cause: Error) => error.setError(cause.message))
  }
  input.addEventListener('blur', submit)
  input.addEventListener('keydown', event => event.key === 'Enter' && submit())
  return {
    element: h('div', { class: 'field' }, h('label', { for: input.id }, label), input, error.element),
    input,
    show(value: string) {
      if (isRefused() || input.matches(':focus')) return
      shown = value
      input.value = value
    },
    setError: error.setError,
  }
}

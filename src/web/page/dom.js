/** An element with attributes, listeners (`onclick`) and children. Text is set as text, never read as markup. */
export function h(name, attributes = {}, ...children) {
  const element = document.createElement(name)
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(key.slice(2), value)
    else if (value === true) element.setAttribute(key, '')
    else if (value !== false && value !== undefined) element.setAttribute(key, value)
  }
  element.append(...children.flat().filter(child => child !== undefined && child !== null && child !== false))
  return element
}

/** A button that submits nothing. */
export function button(className, text, onclick) {
  return h('button', { type: 'button', class: className, onclick }, text)
}

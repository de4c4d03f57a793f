/** Creates an element with attributes, listeners (`onclick`) and children. A string child becomes a text node. */
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

/** Creates a button that does not submit a form. */
export function button(className, text, onclick) {
  return h('button', { type: 'button', class: className, onclick }, text)
}

import { BELL, h, icon } from './dom.ts'
import { STYLE } from './style.ts'

export type View = ReturnType<typeof createView>

/** What the element is made of, in its shadow. */
export function createView(host: HTMLElement) {
  const count = h('span', { class: 'count', 'aria-hidden': 'true' })
  const bell = h('button', { type: 'button', class: 'bell', 'aria-expanded': 'false', 'aria-controls': 'panel' })
  bell.append(icon(BELL), count)
  const heading = h('h2', { id: 'heading', tabindex: '-1' })
  const markAll = h('button', { type: 'button', class: 'quiet' })
  const problem = h('p', { class: 'problem', role: 'alert' })
  const list = h('ul', { 'aria-labelledby': 'heading', role: 'list' })
  const note = h('p', { class: 'note' })
  const retry = h('button', { type: 'button', class: 'more' })
  const more = h('button', { type: 'button', class: 'more' })
  const body = h('div', { class: 'body' }, list, note, retry, more)
  const panel = h('section', { class: 'panel', id: 'panel', 'aria-labelledby': 'heading', hidden: '' })
  panel.append(h('header', {}, heading, markAll), problem, body)
  // In the page from the start and outside the panel, since only what changes in a region that is known is read out.
  const live = h('div', { class: 'hidden', role: 'status', 'aria-live': 'polite' })

  const shadow = host.attachShadow({ mode: 'open' })
  const sheet = new CSSStyleSheet()
  sheet.replaceSync(STYLE)
  // Not a <style>, which a Content-Security-Policy without unsafe-inline would refuse.
  shadow.adoptedStyleSheets = [sheet]
  shadow.append(bell, panel, live)
  return { bell, count, panel, heading, markAll, problem, list, note, retry, more, live }
}

import { BELL, h, icon } from './dom.ts'
import type { InboxList } from './inbox-list.ts'
import { STYLE } from './style.ts'
import type { Texts } from './texts.ts'

export type View = ReturnType<typeof createView>

/** Creates the elements of the inbox in the host's shadow root. */
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
  // Screen readers announce a new text only in a region that is already visible. The panel may be hidden, so the region
  // `live` is outside the panel.
  const live = h('div', { class: 'hidden', role: 'status', 'aria-live': 'polite' })

  const shadow = host.attachShadow({ mode: 'open' })
  const sheet = new CSSStyleSheet()
  sheet.replaceSync(STYLE)
  // A Content-Security-Policy without unsafe-inline would refuse a <style> element, so we use a CSSStyleSheet object.
  shadow.adoptedStyleSheets = [sheet]
  shadow.append(bell, panel, live)
  return { bell, count, panel, heading, markAll, problem, list, note, retry, more, live }
}

/** Sets the text and the visibility of every element except the rows. If `list` is undefined, the inbox is empty. */
export function updateView(view: View, list: InboxList | undefined, texts: Texts): void {
  const { items = [], unread = 0, state = 'idle', hasMore = false } = list ?? {}
  view.bell.setAttribute('aria-label', `${texts.title}, ${texts.unread(unread)}`)
  view.count.textContent = unread > 99 ? '99+' : String(unread)
  view.count.hidden = unread === 0
  view.heading.textContent = texts.title
  view.markAll.textContent = texts.markAll
  view.markAll.hidden = items.every(({ is_read }) => is_read)
  const notes = { idle: '', loading: texts.loading, failed: texts.failed, ready: texts.empty }
  view.note.textContent = notes[state]
  view.note.hidden = items.length > 0
  view.retry.textContent = texts.retry
  view.retry.hidden = state !== 'failed'
  view.more.textContent = texts.more
  view.more.hidden = !hasMore || items.length === 0
  view.list.hidden = items.length === 0
}

import type { Notification } from '../api.ts'
import { BELL, GEAR, h, icon } from './dom.ts'
import type { InboxList } from './inbox-list.ts'
import { findStoredLanguage } from './stored-language.ts'
import { STYLE } from './style.ts'
import { type Language, TEXTS, type Texts } from './texts.ts'

export type View = ReturnType<typeof createView>

/** Creates the elements of the inbox in the host's shadow root. */
export function createView(host: HTMLElement) {
  const count = h('span', { class: 'count', part: 'count', 'aria-hidden': 'true' })
  const bell = h('button', { type: 'button', class: 'bell', part: 'bell', 'aria-expanded': 'false' })
  bell.setAttribute('aria-controls', 'panel')
  bell.append(icon(BELL), count)
  const heading = h('h2', { id: 'heading', tabindex: '-1' })
  const markAll = h('button', { type: 'button', class: 'quiet' })
  const settings = h('button', { type: 'button', class: 'icon', hidden: '' }, icon(GEAR))
  const problem = h('p', { class: 'problem', role: 'alert' })
  const stale = h('p', { class: 'stale', role: 'status' })
  const list = h('ul', { 'aria-labelledby': 'heading', role: 'list' })
  const note = h('p', { class: 'note' })
  const retry = h('button', { type: 'button', class: 'more' })
  const more = h('button', { type: 'button', class: 'more' })
  const body = h('div', { class: 'body' }, list, note, retry, more)
  const panel = h('section', { class: 'panel', part: 'panel', id: 'panel', 'aria-labelledby': 'heading', hidden: '' })
  panel.append(h('header', {}, heading, markAll, settings), problem, stale, body)
  // Screen readers announce a new text only in a region that is already visible. The panel may be hidden, so the region
  // `live` is outside the panel.
  const live = h('div', { class: 'hidden', role: 'status', 'aria-live': 'polite' })

  const shadow = host.attachShadow({ mode: 'open' })
  addStyle(shadow, STYLE)
  shadow.append(bell, panel, live)
  return { bell, count, panel, heading, markAll, settings, problem, stale, list, note, retry, more, live }
}

/** Maps the text of each style sheet to the sheet. The inbox elements of a page share them. */
const sheets = new Map<string, CSSStyleSheet>()

/** Adds a style, unless the root has it already. */
export function addStyle(shadow: ShadowRoot, style: string): void {
  try {
    // A Content-Security-Policy without unsafe-inline would refuse a <style> element, so we use a CSSStyleSheet object.
    const sheet = sheets.get(style) ?? new CSSStyleSheet()
    if (shadow.adoptedStyleSheets.includes(sheet)) return
    sheet.replaceSync(style)
    sheets.set(style, sheet)
    shadow.adoptedStyleSheets = [...shadow.adoptedStyleSheets, sheet]
  } catch {
    // Browsers that were released before 2023 may not be able to create a CSSStyleSheet.
    shadow.append(h('style', {}, style))
  }
}

/** Announces a new notification to screen readers. The stored texts are marked with their own language. */
export function showArrival({ live }: View, texts: Texts, notification: Notification): void {
  const lang = findStoredLanguage(notification)
  const { title, message } = notification
  live.replaceChildren(`${texts.arrived} `, h('span', { lang }, `${title}. ${message}`))
}

/** Sets the text and the visibility of every element except the rows. If `list` is undefined, the inbox is empty. */
export function updateView(view: View, list: InboxList | undefined, language: Language): void {
  const texts = TEXTS[language]
  const { items = [], unread = 0, state = 'idle', hasMore = false } = list ?? {}
  for (const part of [view.bell, view.panel, view.live]) part.lang = language
  view.bell.setAttribute('aria-label', `${texts.title}, ${texts.unread(unread)}`)
  view.count.classList.toggle('long', unread > 99)
  view.count.textContent = unread > 99 ? '99+' : String(unread)
  view.count.hidden = unread === 0
  view.heading.textContent = texts.title
  view.markAll.textContent = texts.markAll
  view.markAll.hidden = items.every(({ is_read }) => is_read)
  const notes = { idle: '', loading: texts.loading, failed: texts.failed, ready: texts.empty }
  view.note.textContent = list ? notes[state] : texts.noClient
  view.note.hidden = items.length > 0
  const isStale = state === 'ready' && (list?.isStale || globalThis.navigator.onLine === false)
  // A screen reader speaks the text only if it appears in an element that is already visible.
  const stale = isStale ? texts.stale : ''
  if (view.stale.textContent !== stale) view.stale.textContent = stale
  view.retry.textContent = texts.retry
  view.retry.hidden = state !== 'failed'
  view.more.textContent = texts.more
  view.more.hidden = !hasMore || items.length === 0
  view.list.hidden = items.length === 0
}

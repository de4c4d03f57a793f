import type { Notification } from '../api.ts'
import { CROSS, h, icon } from './dom.ts'
import { relativeTime } from './relative-time.ts'
import { findStoredLanguage } from './stored-language.ts'
import { type Language, TEXTS } from './texts.ts'

export type Row = {
  item: HTMLLIElement
  open: HTMLButtonElement
  remove: HTMLButtonElement
  /** Updates the row and keeps its elements, so a focused button keeps the focus. */
  show(notification: Notification, language: Language): void
}

/** The number of rows so far, which makes the ids of their elements unique. */
let rows = 0

export function createRow(onOpen: () => void, onRemove: () => void): Row {
  const [unread, title, message] = [h('span', { class: 'hidden' }), h('span', { class: 'title' }), h('span')]
  message.className = 'message'
  const time = h('time')
  const open = h('button', { type: 'button', class: 'text' }, unread, title, message, time)
  rows += 1
  title.id = `title-${rows}`
  const label = h('span', { class: 'hidden', id: `remove-${rows}` })
  // The label and the title may have different languages, but one `aria-label` could have only one language.
  const labels = { 'aria-labelledby': `${label.id} ${title.id}` }
  const remove = h('button', { type: 'button', class: 'remove', ...labels }, icon(CROSS), label)
  open.addEventListener('click', onOpen)
  remove.addEventListener('click', onRemove)
  const item = h('li', {}, open, remove)
  return {
    item,
    open,
    remove,
    show(notification, language) {
      const created = new Date(notification.created_at)
      item.className = notification.is_read ? '' : 'unread'
      unread.textContent = notification.is_read ? '' : TEXTS[language].isUnread
      // A screen reader pronounces the stored texts in their own language.
      for (const text of [title, message]) text.lang = findStoredLanguage(notification)
      title.textContent = notification.title
      message.textContent = keepScores(notification.message)
      time.dateTime = notification.created_at
      time.title = created.toLocaleString(language)
      time.textContent = relativeTime(created, new Date(), language)
      label.textContent = TEXTS[language].remove
    },
  }
}

/** Puts word joiners around the hyphens of a score, so that "6-4" stays on one line. */
function keepScores(text: string): string {
  return text.replace(/(\d)-(?=\d)/g, '$1\u2060-\u2060')
}

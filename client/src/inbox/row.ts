import type { Notification } from '../api.ts'
import { CROSS, h, icon } from './dom.ts'
import { relativeTime } from './relative-time.ts'
import { type Language, TEXTS } from './texts.ts'

export type Row = {
  item: HTMLLIElement
  open: HTMLButtonElement
  remove: HTMLButtonElement
  /** Updates the row and keeps its elements, so a focused button keeps the focus. */
  show(notification: Notification, language: Language): void
}

export function createRow(onOpen: () => void, onRemove: () => void): Row {
  const [unread, title, message] = [h('span', { class: 'hidden' }), h('span', { class: 'title' }), h('span')]
  message.className = 'message'
  const time = h('time')
  const open = h('button', { type: 'button', class: 'text' }, unread, title, message, time)
  const remove = h('button', { type: 'button', class: 'remove' }, icon(CROSS))
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
      title.textContent = notification.title
      message.textContent = notification.message
      time.dateTime = notification.created_at
      time.title = created.toLocaleString(language)
      time.textContent = relativeTime(created, new Date(), language)
      remove.setAttribute('aria-label', TEXTS[language].remove(notification.title))
    },
  }
}

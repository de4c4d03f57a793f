import type { Language } from '../language.ts'
import { MAX_PLAINTEXT_BYTES } from './encryption.ts'

/** A notification as a push shows it. */
export type Shown = {
  id: number
  type: string
  title: string
  /** Undefined if the session of the subscription has expired. The title alone contains no name. */
  message: string | undefined
  locale: Language
  gameId: number | undefined
  isUrgent: boolean
  /** The number of the person's unread notifications. */
  unread: number
  /** The absolute URL to open. */
  link: string
}

const ELLIPSIS = '…'

/**
 * Returns the tag of a push. A device shows one banner for each tag. An urgent push has another tag, so a later push
 * about the same game never replaces a cancellation.
 */
export function buildTag({ id, gameId, isUrgent }: Pick<Shown, 'id' | 'gameId' | 'isUrgent'>): string {
  const tag = gameId === undefined ? `notification-${id}` : `game-${gameId}`
  return isUrgent ? `${tag}-urgent` : tag
}

/**
 * Returns the message of a push: WebKit's declarative format, which our service worker reads too. If the body is too
 * long, cuts it between two characters as people see them.
 */
export function composeMessage(shown: Shown): Buffer {
  const { message } = shown
  const whole = toJson(shown, message)
  if (message === undefined || whole.length <= MAX_PLAINTEXT_BYTES) return whole
  const left = MAX_PLAINTEXT_BYTES - toJson(shown, ELLIPSIS).length
  return toJson(shown, cut(message, left, shown.locale) + ELLIPSIS)
}

function toJson({ id, type, title, locale, gameId, isUrgent, unread, link }: Shown, body: string | undefined): Buffer {
  const notification = {
    title,
    body,
    lang: locale,
    dir: 'auto',
    tag: buildTag({ id, gameId, isUrgent }),
    navigate: link,
    app_badge: unread,
    renotify: isUrgent,
    data: { id, type, game_id: gameId },
  }
  return Buffer.from(JSON.stringify({ web_push: 8030, app_badge: unread, notification }))
}

/** Returns the longest beginning of a text that ends at a grapheme and takes at most `bytes` bytes in JSON. */
function cut(text: string, bytes: number, language: Language): string {
  let [end, left] = [0, bytes]
  for (const { segment } of new Intl.Segmenter(language, { granularity: 'grapheme' }).segment(text)) {
    left -= Buffer.byteLength(JSON.stringify(segment)) - 2
    if (left < 0) break
    end += segment.length
  }
  return text.slice(0, end)
}

import type { Notification } from '../api.ts'
import type { Courtside } from '../courtside.ts'
import { follow } from './follow.ts'
import { InboxList } from './inbox-list.ts'
import { Rows } from './rows.ts'
import { languageOf, TEXTS } from './texts.ts'
import { createView, type View } from './view.ts'

// Where there is no document, as on a server that renders, the import does no harm.
const Base = (globalThis.HTMLElement ?? class {}) as typeof HTMLElement

/**
 * `<courtside-inbox>`: a bell with the number of unread notifications, and their list. It shows those of whoever is signed
 * in with `client`, live, until the session is over; after the next sign-in `client` is set again.
 * `lang` is `fr` or `en`, by default what the browser prefers. Choosing a notification marks it as read and dispatches
 * `notification-open`, whose `detail` is the notification.
 */
export class CourtsideInbox extends Base {
  static observedAttributes = ['lang']
  #view: View | undefined
  #client: Courtside | undefined
  #list: InboxList | undefined
  #rows: Rows | undefined
  #leave = () => {}

  get client(): Courtside | undefined {
    return this.#client
  }

  set client(client: Courtside | undefined) {
    this.#client = client
    if (this.isConnected) this.#start()
  }

  connectedCallback(): void {
    this.#view ??= this.#build()
    // Set before the element was defined, it hides the accessor.
    const { client } = this
    delete (this as { client?: unknown }).client
    this.client = client
  }

  disconnectedCallback(): void {
    this.#leave()
  }

  attributeChangedCallback(): void {
    this.#render()
  }

  get #language() {
    return languageOf(this.getAttribute('lang') ?? globalThis.navigator?.language)
  }

  get #texts() {
    return TEXTS[this.#language]
  }

  get #isOpen(): boolean {
    return this.#view?.panel.hidden === false
  }

  #build(): View {
    const view = createView(this)
    this.#rows = new Rows(
      view.list,
      id => void this.#open(this.#list!.items.find(item => item.id === id)!),
      id => void this.#remove(id),
    )
    view.bell.addEventListener('click', () => this.#toggle(!this.#isOpen))
    view.markAll.addEventListener('click', () => void this.#markAll())
    view.more.addEventListener('click', () => void this.#more())
    view.retry.addEventListener('click', () => {
      view.heading.focus()
      void this.#list?.load()
    })
    this.addEventListener('keydown', event => {
      if (event.key !== 'Escape' || !this.#isOpen) return
      event.stopPropagation()
      this.#toggle(false)
      view.bell.focus()
    })
    return view
  }

  /** Begins anew, with nothing of whoever was here before. */
  #start(): void {
    this.#leave()
    const client = this.#client
    const leaving = new AbortController()
    this.#rows?.show([], this.#language)
    this.#list = undefined
    this.#toggle(false)
    if (!client) return
    const list = new InboxList(client, () => this.#list === list && this.#render())
    this.#list = list
    const offSignedOut = client.onSignedOut(() => this.#start())
    const stop = follow(client, list, {
      isShown: () => this.#isOpen,
      arrived: ({ title, message }) => this.#say(this.#texts.arrived(title, message)),
    })
    const minute = setInterval(() => this.#isOpen && this.#render(), 60_000)
    const pressed = (event: Event) => this.#isOpen && !event.composedPath().includes(this) && this.#toggle(false)
    document.addEventListener('pointerdown', pressed, { signal: leaving.signal })
    this.#leave = () => {
      this.#leave = () => {}
      stop()
      offSignedOut()
      clearInterval(minute)
      leaving.abort()
    }
    this.#render()
  }

  #toggle(open: boolean): void {
    const view = this.#view
    if (!view) return
    view.panel.hidden = !open
    view.bell.setAttribute('aria-expanded', String(open))
    view.problem.textContent = ''
    if (open) void this.#list?.load()
    this.#render()
  }

  #say(text: string): void {
    if (this.#view) this.#view.live.textContent = text
  }

  async #open(notification: Notification): Promise<void> {
    this.dispatchEvent(new CustomEvent('notification-open', { detail: notification, bubbles: true, composed: true }))
    if (!notification.is_read) await this.#attempt(list => list.read(notification.id))
  }

  async #markAll(): Promise<void> {
    if (await this.#attempt(list => list.readShown())) {
      this.#view!.heading.focus()
      this.#say(this.#texts.allRead)
    }
  }

  async #more(): Promise<void> {
    const before = this.#list?.items.length ?? 0
    if (!(await this.#attempt(list => list.loadMore()))) return
    const first = this.#list?.items[before]
    const target = first ? this.#rows?.get(first.id)?.open : this.#view!.heading
    target?.focus()
  }

  async #remove(id: number): Promise<void> {
    const at = this.#list!.items.findIndex(item => item.id === id)
    if (!(await this.#attempt(list => list.delete(id)))) return
    // Focus was on what is gone: the one that took its place has it, else the one before, else the heading.
    const { items } = this.#list!
    const next = items[Math.min(at, items.length - 1)]
    const target = next ? this.#rows?.get(next.id)?.remove : this.#view!.heading
    target?.focus()
    this.#say(this.#texts.removed)
  }

  /** @returns whether it was done, for whoever is still there */
  async #attempt(work: (list: InboxList) => Promise<void>): Promise<boolean> {
    const list = this.#list
    if (!list) return false
    this.#view!.problem.textContent = ''
    try {
      await work(list)
    } catch (error) {
      if (list === this.#list) this.#view!.problem.textContent = (error as Error).message
      return false
    }
    return list === this.#list && this.#isOpen
  }

  #render(): void {
    const [view, list, texts] = [this.#view, this.#list, this.#texts]
    if (!view) return
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
    if (this.#isOpen) this.#rows?.show(items, this.#language)
  }
}

globalThis.customElements?.define('courtside-inbox', CourtsideInbox)

declare global {
  interface HTMLElementTagNameMap {
    'courtside-inbox': CourtsideInbox
  }
}

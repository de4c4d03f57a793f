import type { Notification } from '../api.ts'
import type { Courtside } from '../courtside.ts'
import { InboxBase } from './events.ts'
import { InboxList } from './inbox-list.ts'
import { Panel } from './panel.ts'
import { Rows } from './rows.ts'
import { SettingsView } from './settings-view.ts'
import { TEXTS, toLanguage } from './texts.ts'
import { createView, showArrival, updateView, type View } from './view.ts'
import { warnWithoutClient } from './warning.ts'
import { watchList } from './watch-list.ts'

export type { CourtsideInboxEventMap } from './events.ts'

/**
 * The element `<courtside-inbox>` consists of a bell, the number of unread notifications and a list of all
 * notifications of the user who is signed in with `client`. It updates the notifications live until the session ends.
 * After each new sign-in, the app must set `client` again. If the element already shows the notifications of this
 * client, setting `client` changes nothing. `lang` is `fr` or `en`. The default is the browser's language. A click on a
 * notification marks it as read and dispatches the event `notification-open`, whose `detail` is the notification. With
 * the attribute `settings`, there is a settings panel. Its switch for pushes to this device needs the attribute
 * `service-worker`, the address of the service worker. After the end of the session, the panel has a button that
 * dispatches `sign-in-request`.
 */
export class CourtsideInbox extends InboxBase {
  static observedAttributes = ['lang', 'settings']
  #view: View | undefined
  #client: Courtside | undefined
  #list: InboxList | undefined
  #rows: Rows | undefined
  #panel: Panel | undefined
  #settings: SettingsView | undefined
  #disconnect = () => {}

  get client(): Courtside | undefined {
    return this.#client
  }

  set client(client: Courtside | undefined) {
    const isSame = client === this.#client
    this.#client = client
    if (this.isConnected && !(isSame && this.#list?.isWatched)) this.#start()
  }

  connectedCallback(): void {
    this.#view ??= this.#build()
    // If the app set `client` before the browser knew this class, the element has a plain property `client`, which
    // hides the accessor of the class. So delete the plain property, and set `client` again through the accessor.
    const { client } = this
    delete (this as { client?: unknown }).client
    this.client = client
    if (!client) warnWithoutClient(this)
  }

  disconnectedCallback(): void {
    this.#disconnect()
    this.#panel?.close()
  }

  attributeChangedCallback(): void {
    this.#settings?.close()
    this.#render()
  }

  get #language() {
    return toLanguage(this.getAttribute('lang') ?? globalThis.navigator?.language)
  }

  get #texts() {
    return TEXTS[this.#language]
  }

  get #isOpen(): boolean {
    return this.#panel?.isOpen === true
  }

  #build(): View {
    const view = createView(this)
    this.#panel = new Panel(view.bell, view.panel)
    this.#settings = new SettingsView(this, view, () => this.#panel?.place())
    this.#rows = new Rows(
      view.list,
      id => void this.#open(this.#list!.items.find(item => item.id === id)!),
      id => void this.#remove(id),
    )
    view.bell.addEventListener('click', () => this.#toggle(!this.#isOpen))
    view.markAll.addEventListener('click', () => void this.#markAll())
    view.settings.addEventListener('click', () => void this.#settings!.open(this.#client!, this.#language))
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

  /** Stops the previous watch and empties the list, so no notification of a previous user stays visible. */
  #start(): void {
    this.#disconnect()
    const client = this.#client
    this.#rows?.show([], this.#language)
    this.#list = undefined
    this.#toggle(false)
    if (!client) return
    const list = new InboxList(client, () => this.#list === list && this.#render())
    this.#list = list
    this.#disconnect = watchList(client, list, {
      isOpen: () => this.#isOpen,
      render: () => this.#render(),
      onArrival: notification => showArrival(this.#view!, this.#texts, notification),
      onSignedOut: () => this.#start(),
    })
    this.#render()
  }

  #toggle(open: boolean): void {
    const view = this.#view
    if (!view) return
    if (open) this.#panel?.open(this, () => this.#toggle(false))
    else this.#panel?.close()
    this.#settings?.close()
    view.problem.textContent = ''
    if (open) void this.#list?.load()
    this.#render()
  }

  async #open(notification: Notification): Promise<void> {
    this.dispatchEvent(new CustomEvent('notification-open', { detail: notification, bubbles: true, composed: true }))
    if (!notification.is_read) await this.#attempt(list => list.read(notification.id))
  }

  async #markAll(): Promise<void> {
    if (await this.#attempt(list => list.readShown())) {
      this.#view!.heading.focus()
      this.#view!.live.textContent = this.#texts.allRead
    }
  }

  async #more(): Promise<void> {
    const shown = this.#list?.items.length ?? 0
    if (!(await this.#attempt(list => list.loadMore()))) return
    const first = this.#list?.items[shown]
    const target = first ? this.#rows?.get(first.id)?.open : this.#view!.heading
    target?.focus()
  }

  async #remove(id: number): Promise<void> {
    const index = this.#list!.items.findIndex(item => item.id === id)
    if (!(await this.#attempt(list => list.delete(id)))) return
    // The removed row had the focus. The focus moves to the next row. If there is no next row, the focus moves to the
    // last row. If the list is empty, the focus moves to the heading.
    const { items } = this.#list!
    const next = items[Math.min(index, items.length - 1)]
    const target = next ? this.#rows?.get(next.id)?.remove : this.#view!.heading
    target?.focus()
    this.#view!.live.textContent = this.#texts.removed
  }

  /**
   * Runs an action. If the action fails, shows the error message.
   * @returns true only if the action succeeded, the panel is still open, and the element still shows the list that the
   * action used
   */
  async #attempt(action: (list: InboxList) => Promise<void>): Promise<boolean> {
    const list = this.#list
    if (!list) return false
    this.#view!.problem.textContent = ''
    try {
      await action(list)
    } catch (error) {
      if (list === this.#list) this.#view!.problem.textContent = (error as Error).message
      return false
    }
    return list === this.#list && this.#isOpen
  }

  #render(): void {
    if (!this.#view) return
    updateView(this.#view, this.#list, this.#language)
    this.#settings!.render(this.#language, this.#list !== undefined)
    if (!this.#isOpen) return
    this.#rows?.show(this.#list?.items ?? [], this.#language)
    this.#panel?.place()
  }
}

// Two bundles of a page may both contain this module, and a hot reload evaluates it again.
const registry = globalThis.customElements
if (registry && !registry.get('courtside-inbox')) registry.define('courtside-inbox', CourtsideInbox)

declare global {
  interface HTMLElementTagNameMap {
    'courtside-inbox': CourtsideInbox
  }
}

import { computePlace } from './place.ts'

/**
 * Opens the panel in the browser's top layer, so no ancestor of the inbox can clip or move it. A browser without the
 * popover API shows a fixed element instead.
 */
export class Panel {
  readonly #bell: HTMLElement
  readonly #panel: HTMLElement
  #closing: AbortController | undefined

  constructor(bell: HTMLElement, panel: HTMLElement) {
    this.#bell = bell
    this.#panel = panel
  }

  get isOpen(): boolean {
    return this.#closing !== undefined
  }

  /** @param onPressOutside called when the user presses a mouse button or a finger outside of the inbox */
  open(host: HTMLElement, onPressOutside: () => void): void {
    if (this.isOpen) return
    this.#closing = new AbortController()
    const { signal } = this.#closing
    this.#panel.hidden = false
    if (typeof this.#panel.showPopover === 'function') {
      this.#panel.popover = 'manual'
      this.#panel.showPopover()
    }
    this.#bell.setAttribute('aria-expanded', 'true')
    const place = () => this.place()
    addEventListener('resize', place, { signal })
    // A scroll event does not bubble, so a listener on the document sees the scrolling of inner elements only with
    // `capture`.
    document.addEventListener('scroll', place, { signal, capture: true, passive: true })
    const onPress = (event: Event) => event.composedPath().includes(host) || onPressOutside()
    document.addEventListener('pointerdown', onPress, { signal })
  }

  close(): void {
    this.#closing?.abort()
    this.#closing = undefined
    if (this.#panel.isConnected && this.#panel.popover) this.#panel.hidePopover()
    this.#panel.hidden = true
    this.#bell.setAttribute('aria-expanded', 'false')
  }

  /** Moves the open panel next to the bell. Call this method after each change of the content. */
  place(): void {
    if (!this.isOpen) return
    const { style } = this.#panel
    const body = this.#panel.querySelector('.body:not([hidden])')!
    const scrolled = body.scrollTop
    for (const name of ['width', 'height', 'left', 'top']) style.removeProperty(name)
    const needed = this.#panel.getBoundingClientRect()
    const { clientWidth, clientHeight } = document.documentElement
    // In quirks mode, `clientHeight` is the height of the page.
    const viewport = { width: clientWidth, height: Math.min(clientHeight, innerHeight) || innerHeight }
    const isRightToLeft = getComputedStyle(this.#panel).direction === 'rtl'
    const place = computePlace(this.#bell.getBoundingClientRect(), needed, viewport, isRightToLeft)
    for (const [name, value] of Object.entries(place)) style.setProperty(name, `${value}px`)
    body.scrollTop = scrolled
    // Outside of the top layer, an ancestor with a transform or a filter moves the origin of fixed elements.
    const { left, top } = this.#panel.getBoundingClientRect()
    style.setProperty('left', `${place.left + place.left - left}px`)
    style.setProperty('top', `${place.top + place.top - top}px`)
  }
}

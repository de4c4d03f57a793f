import type { Courtside } from '../courtside.ts'
import { type Language, TEXTS } from './texts.ts'
import { addStyle, type View } from './view.ts'

/** The button for the settings, and the settings panel. The code of the panel is loaded when the user opens it. */
export class SettingsView {
  readonly #host: HTMLElement
  readonly #view: View
  readonly #onResize: () => void
  #panel: HTMLElement | undefined
  /** Counts the openings and closings, so that a panel whose code arrives late does not open. */
  #turn = 0

  /** @param onResize called when the content of the panel has another size */
  constructor(host: HTMLElement, view: View, onResize: () => void) {
    this.#host = host
    this.#view = view
    this.#onResize = onResize
  }

  /** Shows the settings in place of the list. */
  async open(client: Courtside, language: Language): Promise<void> {
    this.close()
    const turn = this.#turn
    try {
      const { createSettings, SETTINGS_STYLE } = await import('./settings.ts')
      if (turn !== this.#turn) return
      const { element, heading } = createSettings({
        client,
        language,
        serviceWorkerUrl: this.#host.getAttribute('service-worker'),
        onBack: () => {
          this.close()
          this.#view.settings.focus()
        },
        onSignIn: () => this.#host.dispatchEvent(new CustomEvent('sign-in-request', { bubbles: true, composed: true })),
        onResize: this.#onResize,
      })
      addStyle(this.#host.shadowRoot!, SETTINGS_STYLE)
      this.#panel = element
      this.#view.panel.append(element)
      this.#showList(false)
      heading.focus()
    } catch {
      this.#view.problem.textContent = TEXTS[language].settingsFailed
    }
  }

  /** Shows the list again. */
  close(): void {
    this.#turn += 1
    if (!this.#panel) return
    this.#panel.remove()
    this.#panel = undefined
    this.#showList(true)
  }

  render(language: Language, hasList: boolean): void {
    this.#view.settings.hidden = !hasList || !this.#host.hasAttribute('settings')
    this.#view.settings.setAttribute('aria-label', TEXTS[language].settings)
  }

  #showList(isShown: boolean): void {
    for (const part of this.#view.panel.children) (part as HTMLElement).hidden = (part !== this.#panel) !== isShown
    this.#onResize()
  }
}

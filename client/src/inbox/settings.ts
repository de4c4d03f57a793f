import type { Courtside } from '../courtside.ts'
import { CourtsideError } from '../error.ts'
import type { NotificationPreferences } from '../preferences.ts'
import { BACK, h, icon } from './dom.ts'
import { PreferenceChanges } from './preference-changes.ts'
import { createDeviceSection } from './settings-device.ts'
import { createSwitch } from './settings-fields.ts'
import { createHoursSection } from './settings-hours.ts'
import { SETTINGS_TEXTS, type SettingsTexts } from './settings-texts.ts'
import { createTypeSections } from './settings-types.ts'
import { type Language, TEXTS } from './texts.ts'

export { SETTINGS_STYLE } from './settings-style.ts'

export type SettingsOptions = {
  client: Courtside
  language: Language
  /** The address of the service worker. Without it, there is no switch for this device. */
  serviceWorkerUrl: string | null
  onBack(): void
  onSignIn(): void
  /** The content has another size. */
  onResize(): void
}

/** Creates the settings panel, and loads the preferences into it. */
export function createSettings(options: SettingsOptions): { element: HTMLElement; heading: HTMLElement } {
  const { language, onBack } = options
  const texts = SETTINGS_TEXTS[language]
  const heading = h('h2', { id: 'settings-heading', tabindex: '-1' }, texts.title)
  const back = h('button', { type: 'button', class: 'icon', 'aria-label': texts.back }, icon(BACK))
  back.addEventListener('click', onBack)
  const body = h('div', { class: 'body' })
  const element = h('section', { class: 'settings', lang: language, 'aria-labelledby': heading.id })
  element.append(h('header', {}, back, heading), body)

  async function load(): Promise<void> {
    body.replaceChildren(h('p', { class: 'note', role: 'status' }, TEXTS[language].loading))
    body.replaceChildren(...(await createContent(options, texts, retry)))
    options.onResize()
  }
  function retry(): void {
    heading.focus()
    void load()
  }
  void load()
  return { element, heading }
}

async function createContent(
  options: SettingsOptions,
  texts: SettingsTexts,
  retry: () => void,
): Promise<HTMLElement[]> {
  const { client, language, serviceWorkerUrl } = options
  const device = serviceWorkerUrl === null ? [] : [createDeviceSection(client, texts, serviceWorkerUrl)]
  try {
    const preferences = await client.preferences.get({ language })
    return [...device, ...createSections(client, language, texts, preferences)]
  } catch (error) {
    const isSignedOut = error instanceof CourtsideError && error.status === 401
    if (isSignedOut) return [...(await createSignIn(options, texts)), ...device]
    const button = h('button', { type: 'button', class: 'more' }, TEXTS[language].retry)
    button.addEventListener('click', retry)
    return [h('p', { class: 'note', role: 'alert' }, TEXTS[language].settingsFailed), button]
  }
}

function createSections(
  client: Courtside,
  language: Language,
  texts: SettingsTexts,
  preferences: NotificationPreferences,
): HTMLElement[] {
  const send: PreferenceChanges['send'] = patch => changes.send(patch)
  const paused = createSwitch(texts.pausedLabel, texts.pausedHint, value => send({ email_paused: value }))
  const email = {
    element: h('fieldset', {}, h('legend', {}, texts.email), paused.element),
    show: (shown: NotificationPreferences) => paused.show(shown.email_paused),
  }
  const sections = [...createTypeSections(texts, preferences, send), email, createHoursSection(texts, send)]
  const show = (shown: NotificationPreferences) => {
    for (const section of sections) section.show(shown)
  }
  const changes = new PreferenceChanges(client, language, preferences, show)
  show(preferences)
  return sections.map(({ element }) => element)
}

/** Explains to a user whose session has ended why pushes carry no text any more, and offers to sign in. */
async function createSignIn({ client, onSignIn }: SettingsOptions, texts: SettingsTexts): Promise<HTMLElement[]> {
  const isOn = (await client.push.state().catch(() => undefined)) === 'on'
  const button = h('button', { type: 'button', class: 'more' }, texts.signIn)
  button.addEventListener('click', onSignIn)
  return [h('p', { class: 'note' }, isOn ? texts.signedOutPush : texts.signedOut), button]
}

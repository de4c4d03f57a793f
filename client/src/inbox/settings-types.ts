import type { NotificationPreferences, PreferencesPatch } from '../preferences.ts'
import { h } from './dom.ts'
import { createError, createToggle, sendToggle } from './settings-fields.ts'
import type { SettingsTexts } from './settings-texts.ts'

const CHANNELS = ['push', 'email'] as const

type TypePreference = { category: string; label: string; push: boolean; email: boolean }
type Section = { element: HTMLElement; show(preferences: NotificationPreferences): void }
type Send = (patch: PreferencesPatch) => Promise<void>

/** Creates one section for each category, with a row of two switches for each notification type. */
export function createTypeSections(texts: SettingsTexts, preferences: NotificationPreferences, send: Send): Section[] {
  const types = Object.entries<TypePreference>(preferences.types)
  const categories = new Set(types.map(([, { category }]) => category))
  return [...categories].map(category => {
    const columns = CHANNELS.map(channel => h('span', { class: 'channel' }, texts[channel]))
    const rows = types
      .filter(([, type]) => type.category === category)
      .map(([name, { label }]) => createRow(name, label, texts, send))
    // The label of each switch contains the name of its column.
    const head = h('div', { class: 'row columns', 'aria-hidden': 'true' }, h('span'), ...columns)
    return {
      element: h('fieldset', {}, h('legend', {}, category), head, ...rows.map(({ element }) => element)),
      show(shown) {
        for (const row of rows) row.show(shown)
      },
    }
  })
}

function createRow(name: string, label: string, texts: SettingsTexts, send: Send): Section {
  const toggles = CHANNELS.map(createToggle)
  const cells = toggles.map((toggle, index) =>
    h('label', { class: 'channel' }, h('span', { class: 'hidden' }, `${label} ${texts[CHANNELS[index]!]}`), toggle),
  )
  const error = createError(...toggles)
  toggles.forEach((toggle, index) => {
    const change = (value: boolean) => send({ types: { [name]: { [CHANNELS[index]!]: value } } } as PreferencesPatch)
    sendToggle(toggle, change, error)
  })
  return {
    element: h(
      'div',
      {},
      h('div', { class: 'row' }, h('span', { 'aria-hidden': 'true' }, label), ...cells),
      error.element,
    ),
    show({ types }) {
      const chosen = (types as Record<string, TypePreference>)[name]
      toggles.forEach((toggle, index) => {
        toggle.checked = chosen?.[CHANNELS[index]!] === true
      })
    },
  }
}

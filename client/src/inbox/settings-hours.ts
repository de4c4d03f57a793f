import type { NotificationPreferences, PreferencesPatch } from '../preferences.ts'
import { h } from './dom.ts'
import { createId, createSwitch, createTextField } from './settings-fields.ts'
import type { SettingsTexts } from './settings-texts.ts'

/** Creates the section with the quiet hours and the time zone. */
export function createHoursSection(texts: SettingsTexts, send: (patch: PreferencesPatch) => Promise<void>) {
  const enabled = createSwitch(texts.quietEnabled, texts.quietHint, value => send({ quiet_hours: { enabled: value } }))
  // The service compares both times, so each change sends both.
  const sendTimes = async () => {
    const [from, to] = times.map(({ input }) => input.value)
    if (!from || !to) throw new Error(texts.invalidTime)
    await send({ quiet_hours: { from, to } })
    for (const time of times) time.setError('')
  }
  const times = [texts.from, texts.to].map(label => createTextField(label, { type: 'time' }, sendTimes))
  const list = h('datalist', { id: createId() })
  const zone = createTextField(texts.timeZone, { list: list.id, autocomplete: 'off', spellcheck: 'false' }, value =>
    send({ time_zone: value }),
  )
  // The list of time zones takes some milliseconds, so it is created when the user needs it.
  zone.input.addEventListener('focus', () => {
    if (list.childElementCount > 0) return
    list.append(...(Intl.supportedValuesOf?.('timeZone') ?? []).map(value => h('option', { value })))
  })
  const pair = h('div', { class: 'pair' }, ...times.map(({ element }) => element))
  return {
    element: h('fieldset', {}, h('legend', {}, texts.quiet), enabled.element, pair, zone.element, list),
    show({ quiet_hours, time_zone }: NotificationPreferences): void {
      enabled.show(quiet_hours.enabled)
      times[0]!.show(quiet_hours.from)
      times[1]!.show(quiet_hours.to)
      zone.show(time_zone)
    },
  }
}

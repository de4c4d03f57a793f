import type { Courtside } from '../courtside.ts'
import type { PushState } from '../push.ts'
import { h } from './dom.ts'
import { createSwitch } from './settings-fields.ts'
import type { SettingsTexts } from './settings-texts.ts'

/** Creates the section with the switch for the pushes to this device. */
export function createDeviceSection(client: Courtside, texts: SettingsTexts, serviceWorkerUrl: string): HTMLElement {
  let last: PushState | undefined
  const toggle = createSwitch(texts.devicePush, '', async wanted => {
    try {
      // The browser asks for the permission only if nothing comes between the click and `enable`.
      show(await (wanted ? client.push.enable({ serviceWorkerUrl }) : client.push.disable()))
    } catch (error) {
      show(last)
      throw error
    }
  })

  function show(state: PushState | undefined): void {
    last = state
    toggle.show(state === 'on')
    toggle.input.disabled = state === undefined || ['unsupported', 'needs-install', 'denied'].includes(state)
    toggle.setHint(state ? texts.states[state] : '')
  }

  show(undefined)
  client.push.state().then(show, (error: Error) => toggle.setHint(error.message))
  return h('fieldset', {}, h('legend', {}, texts.device), toggle.element)
}

/** The style of the settings panel, beside the style of the inbox. */
export const SETTINGS_STYLE = `
.settings { display: contents }
.settings .body { padding: 4px 16px 16px }
.settings .more { margin: 8px -16px 0; width: calc(100% + 32px) }
fieldset { border: 0; border-bottom: 1px solid var(--_line); margin: 0; padding: 12px 0; min-width: 0 }
fieldset:last-of-type { border-bottom: 0 }
legend { float: left; width: 100%; padding: 0; font-weight: 650; margin-bottom: 4px }
legend + * { clear: both }
.row { display: flex; align-items: center; gap: 12px; min-height: 44px; overflow-wrap: anywhere }
.row > span:first-child { flex: 1; min-width: 0 }
.columns { min-height: 0; margin-top: -28px }
.channel { position: relative; width: 44px; text-align: center; color: var(--_muted); font-size: .8125rem }
.hint { margin: 0; color: var(--_muted); font-size: .875rem }
.error { margin: 4px 0; color: var(--_danger); font-size: .875rem }
.error:empty, .hint:empty { display: none }
.field { flex: 1; min-width: 0; margin-top: 10px }
.field label { display: block; font-size: .875rem; margin-bottom: 4px }
.pair { display: flex; gap: 12px }
.field input { width: 100%; min-height: 44px; padding: 8px 10px; font: inherit; color: inherit;
  background: var(--_surface); border: 1px solid var(--_muted); border-radius: 8px }
.field input[aria-invalid=true] { border-color: var(--_danger) }
[role=switch] { appearance: none; flex: none; position: relative; width: 44px; height: 26px; margin: 0; cursor: pointer;
  border: 2px solid var(--_muted); border-radius: 13px; background: none }
[role=switch]::before { content: ''; position: absolute; top: 3px; left: 3px; width: 16px; height: 16px;
  border-radius: 50%; background: var(--_muted) }
[role=switch]:checked { background: var(--_accent); border-color: var(--_accent) }
[role=switch]:checked::before { left: 21px; background: var(--_on-accent) }
[role=switch]:disabled { opacity: .5; cursor: default }
[role=switch][aria-invalid=true] { border-color: var(--_danger) }
@media (prefers-reduced-motion: no-preference) { [role=switch]::before { transition: left .12s } }
@media (forced-colors: active) { [role=switch] { appearance: auto; width: 24px; height: 24px }
  [role=switch]::before { display: none } }
`

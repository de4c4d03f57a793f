/**
 * An app can set the custom properties `--courtside-…`, and style the parts `bell`, `count` and `panel`. The default
 * colours follow the page's `color-scheme`. The bell has the colour of the text around it.
 */
export const STYLE = `
:host {
  --_accent: var(--courtside-accent, light-dark(#0b6b4f, #5fd3a8));
  --_on-accent: var(--courtside-on-accent, light-dark(#fff, #06251b));
  --_surface: var(--courtside-surface, light-dark(#fff, #1b211f));
  --_hover: var(--courtside-hover, light-dark(#f1f5f3, #252d2a));
  --_text: var(--courtside-text, light-dark(#16211d, #e8efec));
  --_muted: var(--courtside-muted, light-dark(#54615c, #a3b1ab));
  --_line: var(--courtside-line, light-dark(#dfe6e3, #34403b));
  --_danger: var(--courtside-danger, light-dark(#a3271b, #ff9d91));
  --_radius: var(--courtside-radius, 14px);
  display: inline-block; position: relative; text-align: start;
  font: var(--courtside-font, inherit); line-height: 1.45;
}
@supports not (color: light-dark(red, red)) {
  :host {
    --_accent: var(--courtside-accent, #0b6b4f); --_on-accent: var(--courtside-on-accent, #fff);
    --_surface: var(--courtside-surface, #fff); --_hover: var(--courtside-hover, #f1f5f3);
    --_text: var(--courtside-text, #16211d); --_muted: var(--courtside-muted, #54615c);
    --_line: var(--courtside-line, #dfe6e3); --_danger: var(--courtside-danger, #a3271b);
  }
}
:host([hidden]), [hidden] { display: none !important }
* { box-sizing: border-box }
button { font: inherit; color: inherit; background: none; border: 0; padding: 0; cursor: pointer; border-radius: 8px }
button[aria-disabled=true] { opacity: .6; cursor: default }
:focus-visible { outline: 2px solid var(--_accent); outline-offset: 2px }
h2:focus-visible { outline-offset: 4px; border-radius: 4px }
svg { display: block; width: 24px; height: 24px; fill: none; stroke: currentColor; stroke-width: 1.7;
  stroke-linecap: round; stroke-linejoin: round }
.bell { position: relative; display: grid; place-items: center; width: 44px; height: 44px; border-radius: 50%;
  color: var(--courtside-bell, inherit) }
.bell:hover, .bell[aria-expanded=true] { background: rgb(128 128 128 / .18) }
.bell:focus-visible { outline-color: currentColor }
.count { position: absolute; top: 1px; inset-inline-end: -4px; min-width: 19px; height: 19px; padding: 0 5px;
  border-radius: 10px; background: var(--_accent); color: var(--_on-accent); font-size: 12px; font-weight: 650;
  line-height: 19px; text-align: center; font-variant-numeric: tabular-nums; pointer-events: none }
.long { top: 0; inset-inline-end: -2px; height: 15px; padding: 0 4px; font-size: 10px; line-height: 15px }
.panel { position: fixed; inset: auto; z-index: 2147483647; width: 25rem; max-width: calc(100vw - 16px); height: auto;
  max-height: min(36rem, calc(100vh - 16px)); margin: 0; padding: 0; display: flex; flex-direction: column;
  overflow: hidden; color: var(--_text); background: var(--_surface); text-transform: none; letter-spacing: normal;
  white-space: normal; border: 1px solid var(--_line); border-radius: var(--_radius);
  box-shadow: 0 12px 40px rgb(0 0 0 / .16), 0 2px 8px rgb(0 0 0 / .08) }
header { display: flex; flex-wrap: wrap; align-items: center; gap: 4px 12px; padding: 12px 16px;
  border-bottom: 1px solid var(--_line) }
h2 { font-size: 1.0625rem; font-weight: 650; margin: 0; flex: 1; letter-spacing: -.01em }
.quiet { color: var(--_accent); font-size: .875rem; font-weight: 550; padding: 6px 8px; margin-inline: -8px }
.icon { display: grid; place-items: center; width: 44px; height: 44px; margin: -10px; color: var(--_muted) }
.icon:hover { color: var(--_text) }
.quiet:hover { text-decoration: underline }
.body { overflow-y: auto; overscroll-behavior: contain }
ul { list-style: none; margin: 0; padding: 0 }
li { display: flex; align-items: flex-start; position: relative; border-bottom: 1px solid var(--_line) }
li:last-child { border-bottom: 0 }
li:hover { background: var(--_hover) }
.text { flex: 1; min-width: 0; text-align: start; padding: 12px 4px 12px 32px; border-radius: 0 }
.text:focus-visible, .remove:focus-visible { outline-offset: -3px }
.text > span { display: block; overflow-wrap: anywhere }
.title { font-weight: 500 }
.message { color: var(--_muted); font-size: .9375rem }
time { display: block; color: var(--_muted); font-size: .8125rem; margin-top: 2px }
.unread .title { font-weight: 650 }
.unread .message { color: var(--_text) }
.unread .text::before { content: ''; position: absolute; left: 14px; top: 19px; width: 8px; height: 8px;
  border-radius: 50%; background: var(--_accent) }
.remove { flex: none; display: grid; place-items: center; width: 44px; height: 44px; color: var(--_muted) }
.remove svg { width: 18px; height: 18px }
.remove:hover { color: var(--_danger) }
.note { margin: 0; padding: 28px 24px; text-align: center; color: var(--_muted); text-wrap: balance }
.problem { color: var(--_danger); padding: 12px 16px; margin: 0; font-size: .9375rem }
.stale { color: var(--_muted); background: var(--_hover); padding: 8px 16px; margin: 0; font-size: .875rem }
.problem:empty, .stale:empty { display: none }
.more { display: block; width: 100%; padding: 14px; color: var(--_accent); font-weight: 550; border-radius: 0;
  border-top: 1px solid var(--_line) }
.more:hover { background: var(--_hover) }
.more:focus-visible { outline-offset: -3px }
.hidden { position: absolute !important; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%);
  white-space: nowrap }
@keyframes in { from { background: var(--_hover) } }
@media (prefers-reduced-motion: no-preference) { li { animation: in 1.2s } }
@media (forced-colors: active) { .unread .text::before { background: Highlight } .count { border: 1px solid } }
`

// `npm run icons` draws the PNG icons of the page from its SVG icon. It needs Chromium.
import { readFileSync, writeFileSync } from 'node:fs'
import { chromium } from 'playwright-core'

const PAGE = new URL('../src/web/page/', import.meta.url)
const BACKGROUND = '#0b6b4f'

/** A phone cuts a maskable icon, for example to a circle. At least the inner 80 % stay visible. */
const ICONS = [
  { name: 'icon-192.png', size: 192, scale: 1 },
  { name: 'icon-512.png', size: 512, scale: 1 },
  { name: 'icon-maskable.png', size: 512, scale: 0.8, background: BACKGROUND },
  { name: 'apple-touch-icon.png', size: 180, scale: 1, background: BACKGROUND },
]

const source = `data:image/svg+xml;base64,${readFileSync(new URL('icon.svg', PAGE)).toString('base64')}`
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium' })
for (const { name, size, scale, background = 'transparent' } of ICONS) {
  const page = await browser.newPage({ viewport: { width: size, height: size } })
  await page.setContent(
    `<body style="margin:0;display:grid;place-items:center;height:100vh;background:${background}">
     <img src="${source}" width="${size * scale}" height="${size * scale}">`,
  )
  writeFileSync(new URL(name, PAGE), await page.screenshot({ omitBackground: true }))
  await page.close()
}
await browser.close()

import type { Language } from '../../language.ts'
import { html, type Markup } from './html.ts'

/**
 * Returns the HTML document of a mail. It sets no colours, so it is readable on light and dark backgrounds. It loads no
 * images.
 */
export function mailPage(subject: string, language: Language, body: Markup): Markup {
  return html`<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>${subject}</title>
</head>
<body style="margin:0;padding:24px;font:16px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif">
${body}</body>
</html>
`
}

// The first step of `npm run generate`: writes docs/openapi.json, the table of settings in README.md, and the titles
// that the inbox element knows.
import { readFileSync, writeFileSync } from 'node:fs'
import { describe } from '../src/cli/openapi.ts'
import { formatTitles } from './english-titles.ts'
import { updateSettings } from './readme-settings.ts'

const README = new URL('../README.md', import.meta.url)
const OPENAPI = new URL('../docs/openapi.json', import.meta.url)
const TITLES = new URL('../client/src/inbox/english-titles.ts', import.meta.url)

const document = await describe()
writeFileSync(OPENAPI, `${JSON.stringify(document, null, 2)}\n`)
writeFileSync(README, updateSettings(readFileSync(README, 'utf8')))
writeFileSync(TITLES, formatTitles())

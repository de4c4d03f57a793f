import { SETTINGS } from '../src/settings.ts'

const HEADER = '| variable | default | meaning |\n|---|---|---|\n'

/**
 * Returns README.md with a current table of settings.
 * @throws Error if README.md has no table of settings
 */
export function updateSettings(readme: string): string {
  const start = readme.indexOf(HEADER)
  if (start < 0) throw new Error(`README.md has no table with the header ${HEADER}`)
  return readme.slice(0, start) + HEADER + settingsRows() + readme.slice(readme.indexOf('\n\n', start) + 1)
}

function settingsRows(): string {
  const rows = Object.entries(SETTINGS).map(([name, { default: value, doc }]) => {
    return `| \`${name}\` | ${value && `\`${value}\``} | ${doc} |\n`
  })
  return rows.join('')
}

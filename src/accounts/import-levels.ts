import type { Static } from 'typebox'
import { ONE_LINE } from '../http/format/plain-text.ts'
import { Type } from '../http/type.ts'
import { compileCheck } from '../http/validation.ts'

/** One level in a file that an operator imports. */
const Level = Type.Object({
  slug: Type.String({ pattern: '^[a-z0-9]+(-[a-z0-9]+)*$', maxLength: 100 }),
  name: Type.String({ maxLength: 100, pattern: ONE_LINE }),
  description: Type.String({ maxLength: 1000 }),
  position: Type.Integer({ minimum: 0, maximum: 2_147_483_647 }),
})

export type NewLevel = Static<typeof Level>

const checkLevel = compileCheck<NewLevel>(Level)

/**
 * Checks the levels in a file that an operator imports.
 * @param input the parsed JSON of the file
 * @throws Error that lists all faults of all levels
 */
export function readLevels(input: unknown): NewLevel[] {
  if (!Array.isArray(input) || input.length === 0) throw new Error('The file must contain a JSON array of levels.')
  const faults: string[] = []
  const levels = input.flatMap((item, index) => {
    const checked = checkLevel(item)
    if ('value' in checked) return [checked.value]
    for (const texts of Object.values(checked.fields))
      for (const text of texts) faults.push(`level ${index + 1}: ${text.en}`)
    return []
  })
  const duplicate = levels.map(level => level.slug).find((slug, index, slugs) => slugs.indexOf(slug) !== index)
  if (duplicate) faults.push(`the slug ${duplicate} appears twice`)
  if (faults.length > 0)
    throw new Error(`The file cannot be imported:\n${faults.map(fault => `  - ${fault}`).join('\n')}`)
  return levels
}

import type { Static } from 'typebox'
import { Type } from '../http/type.ts'
import { compileCheck, ONE_LINE } from '../http/validation.ts'

export const GameLevel = Type.Object(
  {
    id: Type.Integer({ examples: [4] }),
    slug: Type.String({ examples: ['intermediaire'] }),
    name: Type.String({ examples: ['Intermédiaire'] }),
    description: Type.String({ examples: ['Vous maîtrisez les coups de base et commencez à jouer avec les vitres.'] }),
    position: Type.Integer({ description: 'Levels are ordered by it.', examples: [4] }),
  },
  { title: 'GameLevel' },
)

export const LevelAssessment = Type.Object(
  { game_level_id: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, examples: [4] }) },
  { title: 'LevelAssessment' },
)

/** A level of a scale that an operator imports. */
const Level = Type.Object({
  slug: Type.String({ pattern: '^[a-z0-9]+(-[a-z0-9]+)*$', maxLength: 100 }),
  name: Type.String({ maxLength: 100, pattern: ONE_LINE }),
  description: Type.String({ maxLength: 1000 }),
  position: Type.Integer({ minimum: 0, maximum: 2_147_483_647 }),
})

export type NewLevel = Static<typeof Level>

const checkLevel = compileCheck<NewLevel>(Level)

/** Reads a scale from a file's JSON. @throws with every fault of every level */
export function readLevels(input: unknown): NewLevel[] {
  if (!Array.isArray(input) || input.length === 0) throw new Error('The file must hold a JSON array of levels.')
  const faults: string[] = []
  const levels = input.flatMap((item, index) => {
    const checked = checkLevel(item)
    if ('value' in checked) return [checked.value]
    for (const texts of Object.values(checked.fields))
      for (const text of texts) faults.push(`level ${index + 1}: ${text.en}`)
    return []
  })
  const twice = levels.map(level => level.slug).find((slug, index, all) => all.indexOf(slug) !== index)
  if (twice) faults.push(`the slug ${twice} stands twice`)
  if (faults.length > 0)
    throw new Error(`The file cannot be imported:\n${faults.map(fault => `  - ${fault}`).join('\n')}`)
  return levels
}

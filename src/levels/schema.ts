import { Type } from 'typebox'

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

import { Type } from 'typebox'

export const GameLevel = Type.Object(
  {
    id: Type.Integer(),
    slug: Type.String(),
    name: Type.String(),
    description: Type.String(),
    position: Type.Integer(),
  },
  { title: 'GameLevel' },
)

export const LevelAssessment = Type.Object({
  game_level_id: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
})

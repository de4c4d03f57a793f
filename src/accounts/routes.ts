import type { Context } from '../context.ts'
import { invalid, unauthenticated } from '../errors.ts'
import type { App } from '../http/route.ts'
import { Type } from '../http/type.ts'
import { GameLevel, LevelAssessment } from './level-schema.ts'
import * as levels from './levels.ts'
import { toUser, User } from './schema.ts'
import * as users from './users.ts'

export function levelRoutes(app: App, { sql, readSql, now }: Pick<Context, 'sql' | 'readSql' | 'now'>): void {
  app.route({
    method: 'GET',
    url: '/api/v1/game-levels',
    config: { access: 'public' },
    schema: {
      tags: ['Levels'],
      operationId: 'listGameLevels',
      summary: 'The game levels to choose from',
      response: { 200: Type.Object({ data: Type.Array(GameLevel) }) },
    },
    handler: async () => ({ data: await levels.list(readSql) }),
  })

  app.route({
    method: 'POST',
    url: '/api/v1/auth/level-assessment',
    schema: {
      tags: ['Levels'],
      operationId: 'assessLevel',
      summary: 'Choose one’s own game level',
      body: LevelAssessment,
      response: { 200: Type.Object({ data: User }) },
    },
    handler: async request => {
      const { userId } = request.caller
      const user = await users.chooseLevel(sql, userId, request.body.game_level_id, now())
      if (!user) {
        // Deleted since the guard let them in.
        if (!(await users.find(sql, userId))) throw unauthenticated(true)
        throw invalid({ game_level_id: [{ fr: 'Ce niveau n’existe pas.', en: 'There is no such level.' }] })
      }
      return { data: toUser(user) }
    },
  })
}

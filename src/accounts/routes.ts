import type { Context } from '../context.ts'
import { invalid, unauthenticated } from '../errors.ts'
import type { App } from '../http/route.ts'
import { Type } from '../http/type.ts'
import * as levels from './levels.ts'
import { GameLevel, LevelAssessment, toUser, User } from './schema.ts'
import * as users from './users.ts'

/** Adds the routes for profiles and levels. `DELETE /auth/me` is in `auth/` because that route verifies a code. */
export function accountRoutes(app: App, { sql, readSql, now }: Pick<Context, 'sql' | 'readSql' | 'now'>): void {
  app.route({
    method: 'GET',
    url: '/api/v1/auth/me',
    schema: {
      tags: ['Auth'],
      operationId: 'getMe',
      summary: 'Get the signed-in user',
      response: { 200: Type.Object({ data: User }) },
    },
    handler: async request => {
      const user = await users.find(readSql, request.caller.userId)
      if (!user) throw unauthenticated(true)
      return { data: toUser(user) }
    },
  })

  app.route({
    method: 'GET',
    url: '/api/v1/game-levels',
    config: { access: 'public' },
    schema: {
      tags: ['Levels'],
      operationId: 'listGameLevels',
      summary: 'List the game levels that users can choose',
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
      summary: 'Choose the game level of the signed-in user',
      body: LevelAssessment,
      response: { 200: Type.Object({ data: User }) },
    },
    handler: async request => {
      const { userId } = request.caller
      const user = await users.chooseLevel(sql, userId, request.body.game_level_id, now())
      if (!user) {
        // A concurrent request may have deleted the account after the guard accepted the token.
        if (!(await users.find(sql, userId))) throw unauthenticated(true)
        throw invalid({ game_level_id: [{ fr: 'Ce niveau n’existe pas.', en: 'There is no such level.' }] })
      }
      return { data: toUser(user) }
    },
  })
}

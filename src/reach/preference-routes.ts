import { audit } from '../audit.ts'
import type { Context } from '../context.ts'
import { OUTBOX_HINT } from '../db/hints.ts'
import { unauthenticated } from '../errors.ts'
import type { App } from '../http/route.ts'
import { Type } from '../http/type.ts'
import { preferredLanguage } from '../language.ts'
import { NotificationPreferences, PreferencePatch, toJson, toPatch } from './preference-schema.ts'
import * as preferences from './preferences.ts'

const PATH = '/api/v1/notification-preferences'

type NeededContext = Pick<Context, 'config' | 'sql' | 'readSql' | 'hints' | 'now'>

export function preferenceRoutes(app: App, { config, sql, readSql, hints, now }: NeededContext): void {
  const defaults = config.preferenceDefaults

  app.route({
    method: 'GET',
    url: PATH,
    schema: {
      operationId: 'getNotificationPreferences',
      tags: ['Notifications'],
      summary: 'Get your preferences about pushes and mails',
      response: { 200: Type.Object({ data: NotificationPreferences }) },
    },
    handler: async request => {
      const { userId } = request.caller
      const found = (await preferences.readAll(readSql, [userId], defaults)).get(userId)
      // A concurrent request may have deleted the account after the guard accepted the token.
      if (!found) throw unauthenticated(true)
      return { data: toJson(found, preferredLanguage(request.headers['accept-language'])) }
    },
  })

  app.route({
    method: 'PATCH',
    url: PATH,
    schema: {
      operationId: 'updateNotificationPreferences',
      tags: ['Notifications'],
      summary: 'Change any of your preferences about pushes and mails',
      description: PATCH_DESCRIPTION,
      body: PreferencePatch,
      response: { 200: Type.Object({ data: NotificationPreferences }) },
    },
    handler: async request => {
      const updated = await hints.sendAfter(async changed => {
        changed.add(OUTBOX_HINT)
        const options = { defaults, now: now() }
        const result = await preferences.update(sql, request.caller.userId, toPatch(request.body), options)
        if (!result?.isWoken) changed.clear()
        return result
      })
      if (!updated) throw unauthenticated(true)
      audit(request, 'preferences_changed')
      return { data: toJson(updated.preferences, preferredLanguage(request.headers['accept-language'])) }
    },
  })
}

const PATCH_DESCRIPTION = [
  'The service does not store a value that equals the one in force, unless you chose this value before. So you may send',
  'back what `GET` returned, and a new default of the service still reaches you. `null` takes a choice back: the default',
  'applies again. A body with `email_paused` decides about the pause. Otherwise `"email": true` for a type ends it.',
].join(' ')

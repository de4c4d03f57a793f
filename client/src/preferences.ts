import type { Answer, Input } from './endpoints.ts'
import type { Session } from './session.ts'

/** The preferences of a user: the channels of each notification type, and the quiet hours. Includes the defaults. */
export type NotificationPreferences = Answer<'GET /api/v1/notification-preferences'>['data']

/** Any part of the preferences. `null` takes a choice back, so the default applies again. */
export type PreferencesPatch = NonNullable<Input<'PATCH /api/v1/notification-preferences'>['body']>

type Options = {
  /** The language of `label`, `category` and the error messages. The default is the language of the client. */
  language?: string
}

/** The notification preferences of the signed-in user. If a request fails, the method throws CourtsideError. */
export type Preferences = {
  get(options?: Options): Promise<NotificationPreferences>
  /** Changes the given preferences, and keeps the others. @returns all preferences after the change */
  update(patch: PreferencesPatch, options?: Options): Promise<NotificationPreferences>
}

export function createPreferences(session: Session): Preferences {
  return {
    get: async options => (await session.call('GET /api/v1/notification-preferences', {}, options)).data,
    update: async (body, options) =>
      (await session.call('PATCH /api/v1/notification-preferences', { body }, options)).data,
  }
}

import type { Static, TSchema, TUnknown } from 'typebox'
import { nullable, Type } from '../http/type.ts'
import type { Language } from '../language.ts'
import { NOTIFICATION_TYPES, type NotificationType } from '../notification-types.ts'
import { CATALOGUE } from '../notifications/catalogue.ts'
import { isTimeZone } from '../time/wall-clock.ts'
import type { Patch } from './choices.ts'
import { CATEGORY_NAMES, LABELS } from './labels.ts'
import type { Preferences } from './preferences.ts'

const TypePreference = Type.Object(
  {
    category: Type.String({ examples: ['Matchs'] }),
    label: Type.String({ examples: ['Un joueur rejoint votre partie'] }),
    push: Type.Boolean(),
    email: Type.Boolean(),
  },
  { title: 'TypePreference' },
)

const EXAMPLE = Object.fromEntries(
  NOTIFICATION_TYPES.map(type => [type, { ...nameType(type, 'fr'), push: true, email: false }]),
)

const Time = Type.String({
  pattern: '^([01][0-9]|2[0-3]):[0-5][0-9]$',
  examples: ['22:00'],
  rule: { fr: 'L’heure doit être comme 22:00.', en: 'The time must be like 22:00.' },
})

const TimeZone = Type.String({
  examples: ['Europe/Paris'],
  description: 'The IANA name of a time zone.',
  check: isTimeZone,
  published: { maxLength: 64 },
  rule: { fr: 'Ce fuseau horaire n’existe pas.', en: 'There is no such time zone.' },
})

const PAUSED = 'Whether all mails about notifications are off. If true, `email` of a type has no effect.'

export const NotificationPreferences = Type.Object(
  {
    types: Type.Object(forEachType(TypePreference), { examples: [EXAMPLE] }),
    email_paused: Type.Boolean({ description: PAUSED, examples: [false] }),
    quiet_hours: Type.Object({
      enabled: Type.Boolean(),
      from: Time,
      to: Type.String({ ...Time, examples: ['08:00'] }),
    }),
    time_zone: Type.String({ examples: ['Europe/Paris'] }),
  },
  { title: 'NotificationPreferences' },
)

const Switch = Type.Optional(nullable(Type.Boolean({ examples: [false] })))
const Ignored = Type.Optional({ description: 'Ignored.', examples: ['Matchs'] } as unknown as TUnknown)

const TypePatch = Type.Optional(
  nullable(
    Type.Object(
      { push: Switch, email: Switch, category: Ignored, label: Ignored },
      { title: 'TypePreferencePatch', additionalProperties: false },
    ),
  ),
)

/** In this body, null is a value: it takes a choice back. */
export const PreferencePatch = Type.Object(
  {
    types: Type.Optional(
      nullable(
        Type.Object(forEachType(TypePatch), {
          additionalProperties: false,
          examples: [{ game_joined: { push: false } }],
        }),
      ),
    ),
    email_paused: Type.Optional(nullable(Type.Boolean({ description: PAUSED, examples: [false] }))),
    quiet_hours: Type.Optional(
      nullable(
        Type.Object({
          enabled: Switch,
          from: Type.Optional(nullable(Time)),
          to: Type.Optional(nullable(Type.String({ ...Time, examples: ['08:00'] }))),
        }),
      ),
    ),
    time_zone: Type.Optional(nullable(TimeZone)),
  },
  { title: 'NotificationPreferencesPatch' },
)

function forEachType<T extends TSchema>(schema: T) {
  return Object.fromEntries(NOTIFICATION_TYPES.map(type => [type, schema])) as unknown as Record<NotificationType, T>
}

export function toPatch({ types, email_paused, quiet_hours, time_zone }: Static<typeof PreferencePatch>): Patch {
  return { types, emailPaused: email_paused, quietHours: quiet_hours, timeZone: time_zone }
}

function nameType(type: NotificationType, language: Language) {
  return { category: CATEGORY_NAMES[CATALOGUE[type].category][language], label: LABELS[type][language] }
}

/** Returns preferences as JSON, with names in the given language. */
export function toJson(preferences: Preferences, language: Language): Static<typeof NotificationPreferences> {
  const types = NOTIFICATION_TYPES.map(type => [type, { ...nameType(type, language), ...preferences.types[type] }])
  return {
    types: Object.fromEntries(types),
    email_paused: preferences.emailPaused,
    quiet_hours: preferences.quietHours,
    time_zone: preferences.timeZone,
  }
}

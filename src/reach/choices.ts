import { NOTIFICATION_TYPES, type NotificationType } from '../notification-types.ts'
import type { QuietHours } from './quiet-hours.ts'

export const CHANNELS = ['push', 'email'] as const

export type Channel = (typeof CHANNELS)[number]

/** The values that apply to a person who has chosen nothing. Push is on for every type. */
export type PreferenceDefaults = {
  emailTypes: ReadonlySet<NotificationType>
  quietHours: QuietHours
  timeZone: string
}

/** The values that a person chose. A missing value means that the person made no choice. */
export type Choices = {
  types: Partial<Record<NotificationType, Partial<Record<Channel, boolean>>>>
  emailPaused: boolean
  quietHours: Partial<QuietHours>
  timeZone?: string | undefined
}

/** The values that apply to a person: their choices, and defaults for the rest. */
export type EffectiveValues = {
  types: Record<NotificationType, Record<Channel, boolean>>
  emailPaused: boolean
  quietHours: QuietHours
  timeZone: string
}

type Change<T> = T | null | undefined

/** Changes of choices. A missing value changes nothing, and null takes a choice back. */
export type Patch = {
  types?: Change<Partial<Record<NotificationType, Change<Partial<Record<Channel, Change<boolean>>>>>>>
  emailPaused?: Change<boolean>
  quietHours?: Change<{ [K in keyof QuietHours]?: Change<QuietHours[K]> }>
  timeZone?: Change<string>
}

export function resolveChoices(choices: Choices, defaults: PreferenceDefaults): EffectiveValues {
  const types = NOTIFICATION_TYPES.map(type => {
    const chosen = choices.types[type]
    return [type, { push: chosen?.push ?? true, email: chosen?.email ?? defaults.emailTypes.has(type) }]
  })
  return {
    types: Object.fromEntries(types),
    emailPaused: choices.emailPaused,
    quietHours: { ...defaults.quietHours, ...choices.quietHours },
    timeZone: choices.timeZone ?? defaults.timeZone,
  }
}

/**
 * Returns the choices after a change. If a value equals the effective value and the person has not chosen it before, it
 * does not become a choice. So a client may send back the values that it received, and a new default still applies.
 * @param effective the values that apply before the change
 */
export function changeChoices(choices: Choices, effective: EffectiveValues, patch: Patch): Choices {
  const types = NOTIFICATION_TYPES.map(type => {
    const change = patch.types === null ? null : patch.types?.[type]
    return [type, changeGroup(choices.types[type] ?? {}, effective.types[type], change)] as const
  })
  return {
    types: Object.fromEntries(types.filter(([, chosen]) => Object.keys(chosen).length > 0)),
    emailPaused: decideEmailPaused(choices, patch),
    quietHours: changeGroup(choices.quietHours, effective.quietHours, patch.quietHours),
    timeZone: changeValue(choices.timeZone, effective.timeZone, patch.timeZone),
  }
}

/** A change that turns the mails of a type on ends the pause, unless the same change decides about the pause. */
function decideEmailPaused({ emailPaused }: Choices, patch: Patch): boolean {
  if (patch.emailPaused !== undefined) return patch.emailPaused ?? false
  const turnsOn = Object.values(patch.types ?? {}).some(channels => channels?.email === true)
  return emailPaused && !turnsOn
}

function changeGroup<T extends Record<string, unknown>>(
  chosen: Partial<T>,
  effective: T,
  change: Change<{ [K in keyof T]?: Change<T[K]> }>,
): Partial<T> {
  const members = Object.keys(effective).map(name => {
    const key = name as keyof T
    return [key, changeValue(chosen[key], effective[key], change === null ? null : change?.[key])] as const
  })
  return Object.fromEntries(members.filter(([, value]) => value !== undefined)) as Partial<T>
}

function changeValue<T>(chosen: T | undefined, effective: T, change: Change<T>): T | undefined {
  if (change === undefined) return chosen
  if (change === null) return undefined
  return chosen === undefined && change === effective ? undefined : change
}

import Negotiator from 'negotiator'

export type Language = 'fr' | 'en'

/** A text in every language of the service. */
export type Text = Readonly<Record<Language, string>>

/**
 * Returns the language that `Accept-Language` prefers, or undefined for a request without this HTTP header. Such a
 * request says nothing about its user's language.
 */
export function requestedLanguage(acceptLanguage: string | undefined): Language | undefined {
  return acceptLanguage?.trim() ? preferredLanguage(acceptLanguage) : undefined
}

/**
 * Returns `en` if `Accept-Language` prefers English to French. Otherwise returns `fr`, also for a request without this
 * HTTP header.
 */
export function preferredLanguage(acceptLanguage: string | undefined): Language {
  const preferred = new Negotiator({ headers: { 'accept-language': acceptLanguage } }).language(['fr', 'en'])
  return preferred === 'en' ? 'en' : 'fr'
}

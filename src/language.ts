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

/** The number of characters of `Accept-Language` that are read. Browsers send less than 200. */
const MAX_HEADER_LENGTH = 500

/**
 * Returns `en` if `Accept-Language` prefers English to French. Otherwise returns `fr`, also for a request without this
 * HTTP header. Reads only the first `MAX_HEADER_LENGTH` characters, because a long header would take milliseconds.
 */
export function preferredLanguage(acceptLanguage: string | undefined): Language {
  const preferred = new Negotiator({
    headers: { 'accept-language': acceptLanguage?.slice(0, MAX_HEADER_LENGTH) },
  }).language(['fr', 'en'])
  return preferred === 'en' ? 'en' : 'fr'
}

import Negotiator from 'negotiator'

export type Language = 'fr' | 'en'

/** A sentence in every language we speak. */
export type Text = Readonly<Record<Language, string>>

/** `en` if the header prefers English to French, else `fr`, also for no header and for `*` (contract §2, verify-otp). */
export function preferredLanguage(acceptLanguage: string | undefined): Language {
  const wanted = new Negotiator({ headers: { 'accept-language': acceptLanguage } }).language(['fr', 'en'])
  return wanted === 'en' ? 'en' : 'fr'
}

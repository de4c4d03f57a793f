/** The names of the levels of a new installation, which are French. The API does not state the language of a level. */
const FRENCH_NAMES = new Set([
  'Découverte',
  'Initié',
  'Débutant confirmé',
  'Intermédiaire',
  'Intermédiaire confirmé',
  'Avancé',
  'Expert',
  'Élite',
])

/** Returns the `lang` of a level's texts, or undefined if the operator has imported other levels. */
export function findLevelLanguage({ name }) {
  return FRENCH_NAMES.has(name) ? 'fr' : undefined
}

// Spaces in French texts follow the rules of the Imprimerie nationale (Lexique des règles typographiques). A no-break
// space is on both sides of "h", before ":" and between a day and its month. A narrow no-break space is before
// "!". On a narrow screen, such as a phone, an ordinary space in these positions could cause a line break before "h
// 00", ":" or "!". All other spaces are ordinary spaces, where a line may break. English texts have only ordinary
// spaces.

/** No-break space, as wide as a word space. */
export const NBSP = '\u00a0'

/** Narrow no-break space, in French "espace fine insécable". */
export const NARROW_NBSP = '\u202f'

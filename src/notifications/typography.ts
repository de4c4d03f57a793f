// The spaces of French texts follow the Imprimerie nationale's rules (Lexique des règles typographiques), so that no line
// of a phone's screen begins with "h 00", ":" or "!". A word-wide no-break space stands on both sides of "h", before ":" and
// between the day and its month; a thin one before "!". Everything else, "2 places" included, keeps its ordinary space:
// a line may break there without harm. English has no such rule and gets ordinary spaces only.

/** No-break space, as wide as a word space. */
export const NBSP = '\u00a0'

/** Narrow no-break space, the "espace fine insécable". */
export const NARROW_NBSP = '\u202f'

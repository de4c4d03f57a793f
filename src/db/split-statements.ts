/**
 * The parts of SQL text in which a semicolon does not end a statement: texts, quoted names, dollar-quoted texts, and
 * comments. Our migrations use no other quoting.
 */
const TOKEN = /'[^']*'|"[^"]*"|\$(\w*)\$[\s\S]*?\$\1\$|--.*|\/\*[\s\S]*?\*\/|[\s\S]/g

/** Splits the text of a migration into its statements. Leaves out parts that contain only comments. */
export function splitStatements(text: string): string[] {
  const statements: string[] = []
  let statement = ''
  let hasCode = false
  for (const [token] of `${text};`.matchAll(TOKEN)) {
    if (token !== ';') {
      statement += token
      hasCode ||= !/^(--|\/\*|\s)/.test(token)
      continue
    }
    if (hasCode) statements.push(statement.trim())
    statement = ''
    hasCode = false
  }
  return statements
}

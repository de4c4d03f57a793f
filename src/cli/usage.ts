import { type ParseArgsOptionsConfig, parseArgs } from 'node:util'

/** The command line was wrong; the message says how it goes. Exit code 64, EX_USAGE of sysexits.h. */
export class UsageError extends Error {}

/**
 * Reads the arguments of a command; all take `--json` and `--help`.
 * @param usage what follows `npm run courtside --`, its words in capitals being arguments
 * @param about a paragraph that `--help` shows below
 * @returns undefined when `--help` was asked for, and has been printed
 * @throws UsageError when options or the number of words don't fit
 */
export function readArguments(
  args: string[],
  usage: string,
  about: string,
  more: ParseArgsOptionsConfig = {},
): { values: Values; words: string[] } | undefined {
  const line = `Usage: npm run courtside -- ${usage}`
  const { values, positionals } = parse(args, { ...more, json: { type: 'boolean' }, help: { type: 'boolean' } }, line)
  if (values.help) {
    console.log(`${line}\n\n${about}`)
    return undefined
  }
  const wanted = usage.split(' ').filter(word => /^[A-Z]+$/.test(word)).length
  if (positionals.length !== wanted) throw new UsageError(line)
  return { values, words: positionals }
}

type Values = { json?: boolean; help?: boolean; yes?: boolean; force?: boolean; url?: string }

function parse(args: string[], options: ParseArgsOptionsConfig, line: string) {
  try {
    const { values, positionals } = parseArgs({ args, options, allowPositionals: true })
    return { values: values as Values, positionals }
  } catch (error) {
    throw new UsageError(`${(error as Error).message}\n${line}`)
  }
}

/** Prints a result: as JSON for programs, else in words. */
export function print(result: unknown, json: boolean | undefined, words: string): void {
  console.log(json ? JSON.stringify(result) : words)
}

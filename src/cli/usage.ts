import { writeFileSync } from 'node:fs'
import { type ParseArgsOptionsConfig, parseArgs } from 'node:util'

/**
 * An error for a wrong command line. Its message contains the usage. The process then exits with the code 64, which is
 * EX_USAGE in sysexits.h.
 */
export class UsageError extends Error {}

/**
 * Reads the arguments of a command. All commands accept `--json` and `--help`. If `--help` is given, prints the help.
 * @param usage the command line after `npm run courtside --`. Words in capitals stand for arguments
 * @param description a paragraph that `--help` prints below the usage
 * @param more the options that the command accepts in addition to `--json` and `--help`
 * @returns the arguments, or undefined if `--help` was given
 * @throws UsageError if an option is unknown
 * @throws UsageError if the number of arguments is wrong
 */
export function readArguments(
  args: string[],
  usage: string,
  description: string,
  more: ParseArgsOptionsConfig = {},
): { values: Values; positionals: string[] } | undefined {
  const usageLine = `Usage: npm run courtside -- ${usage}`
  const { values, positionals } = parse(
    args,
    { ...more, json: { type: 'boolean' }, help: { type: 'boolean' } },
    usageLine,
  )
  if (values.help) {
    printText(`${usageLine}\n\n${description}`)
    return undefined
  }
  const expected = usage.split(' ').filter(word => /^[A-Z]+$/.test(word)).length
  if (positionals.length !== expected) throw new UsageError(usageLine)
  return { values, positionals }
}

type Values = { json?: boolean; help?: boolean; yes?: boolean; check?: boolean; force?: boolean; url?: string }

function parse(args: string[], options: ParseArgsOptionsConfig, usageLine: string) {
  try {
    const { values, positionals } = parseArgs({ args, options, allowPositionals: true })
    return { values: values as Values, positionals }
  } catch (error) {
    throw new UsageError(`${(error as Error).message}\n${usageLine}`)
  }
}

/** Prints a result: as JSON if `--json` was given, otherwise as text. */
export function print(result: unknown, json: boolean | undefined, text: string): void {
  printText(json ? JSON.stringify(result) : text)
}

/** Prints a text and a line break. @throws if stdout cannot be written, while `console.log` would ignore the error */
export function printText(text: string): void {
  writeFileSync(1, `${text}\n`)
}

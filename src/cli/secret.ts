import { newSecret } from '../secrets.ts'
import { print, readArguments } from './usage.ts'

/** `courtside secret` */
export async function run(args: string[]): Promise<void> {
  const read = readArguments(args, 'secret [--json]', 'Prints 32 random bytes for JWT_SECRET or INTAKE_KEYS.')
  if (!read) return
  const secret = newSecret()
  print({ secret }, read.values.json, secret)
}

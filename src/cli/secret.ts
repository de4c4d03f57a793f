import { newSecret } from '../secrets.ts'
import { print, readArguments } from './usage.ts'

/** `courtside secret` */
export async function run(args: string[]): Promise<void> {
  const parsed = readArguments(args, 'secret [--json]', 'Prints 32 random bytes for JWT_SECRET or INTAKE_KEYS.')
  if (!parsed) return
  const secret = newSecret()
  print({ secret }, parsed.values.json, secret)
}

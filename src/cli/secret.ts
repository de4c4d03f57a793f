import { newSecret } from '../secrets.ts'
import { print, readArguments } from './usage.ts'

/** `courtside secret` */
export async function run(args: string[]): Promise<void> {
  const parsed = readArguments(
    args,
    'secret [--json]',
    'Prints 32 random bytes for JWT_SECRET, INTAKE_KEYS or VAPID_PRIVATE_KEY.',
  )
  if (!parsed) return
  const secret = newSecret()
  print({ secret }, parsed.values.json, secret)
}

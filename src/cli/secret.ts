import { parseArgs } from 'node:util'
import { newSecret } from '../secrets.ts'

/** `courtside secret [--json]` */
export async function run(args: string[]): Promise<void> {
  const { values } = parseArgs({ args, options: { json: { type: 'boolean' }, help: { type: 'boolean' } } })
  if (values.help)
    return console.log(
      'Usage: npm run courtside -- secret [--json]\n\nPrints 32 random bytes for JWT_SECRET or INTAKE_KEYS.',
    )
  console.log(values.json ? JSON.stringify({ secret: newSecret() }) : newSecret())
}

import { pino } from 'pino'
import { createApp } from '../app.ts'
import { readConfig } from '../config.ts'
import { createContext } from '../context.ts'
import { type OpenApiDocument, openapiDocument } from '../http/openapi/document.ts'
import { newSecret } from '../secrets.ts'
import { printText, readArguments } from './usage.ts'

/** `courtside openapi`: prints the OpenAPI document. The document is always JSON, so `--json` has no effect. */
export async function run(args: string[]): Promise<void> {
  if (!readArguments(args, 'openapi [--json]', 'Prints the OpenAPI document.')) return
  printText(JSON.stringify(await describe(), null, 2))
}

/**
 * Returns the OpenAPI document of a service with default settings. The function runs no SQL statement, so it needs no
 * database.
 */
export async function describe(): Promise<OpenApiDocument> {
  const bootstrap = {
    databaseUrl: 'postgres://nowhere.invalid/none',
    jwtSecrets: [newSecret()],
    intakeKeys: [newSecret()],
  }
  const ctx = createContext(readConfig({}), pino({ level: 'silent' }), bootstrap)
  const app = await createApp(ctx)
  try {
    return await openapiDocument(app)
  } finally {
    await app.close()
    await ctx.close()
  }
}

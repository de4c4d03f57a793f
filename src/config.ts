import { isLoopback } from './loopback.ts'
import { SETTINGS, type Setting } from './settings.ts'

export type Config = Readonly<ReturnType<typeof toConfig>>

/** Every fault of the environment at once. `npm start` prints them and exits with 78 (EX_CONFIG of sysexits.h). */
export class ConfigError extends Error {
  readonly faults: string[]
  constructor(faults: string[]) {
    super(`Bad configuration:\n${faults.map(fault => `  - ${fault}`).join('\n')}`)
    this.name = 'ConfigError'
    this.faults = faults
  }
}

/**
 * Turns the environment into a frozen Config. Pure; an unset or blank variable takes its default.
 * @throws ConfigError listing every fault at once
 */
export function readConfig(env: Record<string, string | undefined>): Config {
  const faults = new Map<string, string>()
  const read = <T>(name: keyof typeof SETTINGS, declared: Setting<T>): T => {
    const value = env[name]?.trim() || declared.default
    try {
      return declared.parse(value)
    } catch (error) {
      // The value itself stays unsaid: it may be a secret.
      faults.set(name, `${name}: ${(error as Error).message}`)
      return undefined as T
    }
  }
  const config = toConfig(read)
  const all = [...faults.values(), ...contradictions(config, env, name => faults.has(name))]
  if (all.length > 0) throw new ConfigError(all)
  return Object.freeze(config)
}

function toConfig(read: <T>(name: keyof typeof SETTINGS, declared: Setting<T>) => T) {
  const role = read('ROLE', SETTINGS.ROLE)
  return {
    host: read('HOST', SETTINGS.HOST),
    port: read('PORT', SETTINGS.PORT),
    /** Undefined: the embedded database under `dataDir`. */
    databaseUrl: read('DATABASE_URL', SETTINGS.DATABASE_URL),
    dataDir: read('DATA_DIR', SETTINGS.DATA_DIR),
    /** Undefined: the development mailbox. */
    smtpUrl: read('SMTP_URL', SETTINGS.SMTP_URL),
    mailFrom: read('MAIL_FROM', SETTINGS.MAIL_FROM),
    /** Newest first. Empty only with the embedded database: then generated and kept. */
    jwtSecrets: read('JWT_SECRET', SETTINGS.JWT_SECRET),
    intakeKeys: read('INTAKE_KEYS', SETTINGS.INTAKE_KEYS),
    trustProxy: read('TRUST_PROXY', SETTINGS.TRUST_PROXY),
    corsOrigins: read('CORS_ORIGINS', SETTINGS.CORS_ORIGINS),
    metricsToken: read('METRICS_TOKEN', SETTINGS.METRICS_TOKEN),
    /** Requests a minute and client. */
    throttle: {
      requestOtp: read('THROTTLE_REQUEST_OTP', SETTINGS.THROTTLE_REQUEST_OTP),
      verifyOtp: read('THROTTLE_VERIFY_OTP', SETTINGS.THROTTLE_VERIFY_OTP),
    },
    reminderOffsets: read('REMINDER_OFFSETS', SETTINGS.REMINDER_OFFSETS),
    timeZone: read('TIMEZONE', SETTINGS.TIMEZONE),
    retentionReadDays: read('RETENTION_READ_DAYS', SETTINGS.RETENTION_READ_DAYS),
    retentionDays: read('RETENTION_DAYS', SETTINGS.RETENTION_DAYS),
    termsVersion: read('TERMS_VERSION', SETTINGS.TERMS_VERSION),
    web: read('WEB', SETTINGS.WEB) === 'on',
    serves: role !== 'worker',
    works: role !== 'web',
    logLevel: read('LOG_LEVEL', SETTINGS.LOG_LEVEL),
    devMailbox: read('DEV_MAILBOX', SETTINGS.DEV_MAILBOX) === 'on',
  }
}

/**
 * What each setting allows by itself but not together with the others.
 * @param isFaulty whether a setting was given, but couldn't be read: it counts as given, whatever it was meant to be
 */
function contradictions(
  config: Config,
  env: Record<string, string | undefined>,
  isFaulty: (name: keyof typeof SETTINGS) => boolean,
): string[] {
  const faults: string[] = []
  const isExternal = config.databaseUrl !== undefined || isFaulty('DATABASE_URL')
  const mails = config.smtpUrl !== undefined || isFaulty('SMTP_URL')
  if (isExternal) {
    for (const [name, keys] of [
      ['JWT_SECRET', config.jwtSecrets],
      ['INTAKE_KEYS', config.intakeKeys],
    ] as const) {
      if (!isFaulty(name) && keys.length === 0) {
        faults.push(`${name}: required with DATABASE_URL; \`npm run courtside -- secret\` makes one`)
      }
    }
  }
  // The mailbox shows everybody's codes, so that it must never be found on anything but a developer's own machine.
  if (!mails && !config.devMailbox && !isFaulty('DEV_MAILBOX')) {
    const exposed = [
      isLoopback(config.host) ? undefined : 'a HOST beyond loopback',
      isExternal ? 'DATABASE_URL' : undefined,
      isFaulty('TRUST_PROXY') || config.trustProxy.length > 0 ? 'TRUST_PROXY' : undefined,
      env.NODE_ENV === 'production' ? 'NODE_ENV=production' : undefined,
    ].filter(reason => reason !== undefined)
    if (exposed.length > 0) {
      faults.push(
        `SMTP_URL: required with ${exposed.join(', ')} (or DEV_MAILBOX=on, which shows codes to anyone local)`,
      )
    }
  }
  // The mailbox lives in the memory of the process that sends the mail, so that process must be the one that shows it.
  if (!mails && !(config.serves && config.works)) {
    faults.push('SMTP_URL: required with ROLE=web or ROLE=worker; the development mailbox needs ROLE=all')
  }
  return faults
}
